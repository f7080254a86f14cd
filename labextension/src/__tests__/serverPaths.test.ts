import { candidates } from '../viewer/serverPaths';

test('an absolute path is one below the server’s root', () => {
  expect(candidates('/srv/work/src/a.py', '/srv/work', 'nb')).toEqual(['src/a.py']);
  expect(candidates('/srv/work2/a.py', '/srv/work', 'nb')).toEqual([]);
  expect(candidates('/a.py', '/', '')).toEqual(['a.py']);
});

test('a root below a home folder', () => {
  expect(candidates('/home/ada/work/a.py', '~/work', '')).toEqual(['a.py']);
  expect(candidates('/srv/a.py', '~/work', '')).toEqual([]);
});

test('a relative path counts from the notebook or a folder above it', () => {
  expect(candidates('src/a.py', '/srv', 'project/nb')).toEqual(['project/nb/src/a.py', 'project/src/a.py', 'src/a.py']);
});

test('Windows', () => {
  expect(candidates('C:\\work\\src\\a.py', 'C:\\work', '')).toEqual(['src/a.py']);
});
