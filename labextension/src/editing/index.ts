/** The plugins that help with lines of ours while they are typed: completion, hover texts, colours. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { EditorExtensionRegistry, IEditorExtensionRegistry, IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { ICompletionProviderManager } from '@jupyterlab/completer';
import { Text } from '@jupyterlab/coreutils';
import { EditorView } from '@codemirror/view';

import { trans } from '../card/i18n';
import { documentOf, kernelOf, requestKernel } from '../kernel/requests';
import { IKernelHub } from '../kernel/hub';
import type { KernelHub, OpenKernel } from '../kernel/hub';
import { preferences } from '../card/preferences';
import { highlighting } from './highlight';
import type { Languages } from './highlight';
import { explainCursor, hover, ON_LINE } from './hover';
import type { LinePosition, Source } from './hover';
import { replaceProviders, ToolCompleter } from './completer';
import type { HelpReply } from './messages';

/** The command of Shift-Tab on one of our lines. */
export const EXPLAIN = 'opencode-jupyter:explain-line';

const completion: JupyterFrontEndPlugin<void> = {
  id: 'opencode-jupyter:completion',
  description: 'Completes %tool lines, while the kernel is busy too.',
  autoStart: true,
  requires: [ICompletionProviderManager, IKernelHub],
  activate: (app: JupyterFrontEnd, manager: ICompletionProviderManager, hub: KernelHub): void => {
    const completer = new ToolCompleter(hub);
    manager.registerProvider(completer);
    // JupyterLab's own are registered by then
    void app.restored.then(() => replaceProviders(manager, completer));
  }
};

/** The editor that has the focus. */
function viewAt(): EditorView | undefined {
  const node = document.activeElement?.closest<HTMLElement>('.cm-editor');
  return (node && EditorView.findFromDOM(node)) ?? undefined;
}

function sourceOf(app: JupyterFrontEnd, hub: KernelHub): Source {
  const kernelIn = (view: EditorView): OpenKernel | undefined => {
    const id = kernelOf(documentOf(app.shell, view.dom, ''))?.id;
    return hub.kernels().find(kernel => kernel.id === id);
  };
  return {
    answers: view => preferences().completions && kernelIn(view) !== undefined,
    ask: async (view: EditorView, { text, first, at }: LinePosition): Promise<HelpReply> => {
      const before = first ? 0 : 1;
      const code = first ? text : `\n${text}`;
      const request = { kind: 'help' as const, code, cursor_pos: Text.jsIndexToCharIndex(before + at, code) };
      const reply = (await requestKernel(kernelIn(view)?.connection ?? null, request)) as HelpReply;
      const offset = (count = 0): number => Text.charIndexToJsIndex(count, code) - before;
      return { ...reply, start: offset(reply.start), end: offset(reply.end) };
    }
  };
}

const hovering: JupyterFrontEndPlugin<void> = {
  id: 'opencode-jupyter:hover',
  description: 'Says what tools and their parameters are, in %tool lines.',
  autoStart: true,
  requires: [IEditorExtensionRegistry, IKernelHub],
  activate: (app: JupyterFrontEnd, registry: IEditorExtensionRegistry, hub: KernelHub): void => {
    const source = sourceOf(app, hub);
    registry.addExtension({
      name: 'opencode-jupyter:hover',
      factory: () => EditorExtensionRegistry.createImmutableExtension(hover(source))
    });
    app.commands.addCommand(EXPLAIN, {
      label: trans.__('Explain the tool or parameter at the cursor'),
      isEnabled: () => viewAt() !== undefined,
      execute: async () => {
        const view = viewAt();
        if (view) {
          await explainCursor(view, source);
        }
      }
    });
    app.commands.addKeyBinding({
      command: EXPLAIN,
      keys: ['Shift Tab'],
      selector: `.jp-CodeMirrorEditor:not(.jp-mod-completer-active) .cm-editor.${ON_LINE}`
    });
  }
};

const painting: JupyterFrontEndPlugin<void> = {
  id: 'opencode-jupyter:highlighting',
  description: 'Shows the bodies of %%tool and %%agent cells in their own language.',
  autoStart: true,
  requires: [IEditorExtensionRegistry, IEditorLanguageRegistry],
  activate: (_: JupyterFrontEnd, registry: IEditorExtensionRegistry, all: IEditorLanguageRegistry): void => {
    const languages: Languages = {
      load: async ({ name, file }) => {
        const spec = name ? all.findByName(name) : file ? all.findByFileName(file) : null;
        const loaded = spec && (await all.getLanguage(spec));
        return loaded?.support?.language ?? null;
      }
    };
    registry.addExtension({
      name: 'opencode-jupyter:highlighting',
      // cells and prompts; a file is shown as the editor of files does
      factory: ({ inline, model }) =>
        inline ? EditorExtensionRegistry.createImmutableExtension(highlighting(languages, () => model.mimeType)) : null
    });
  }
};

export default [completion, hovering, painting];
