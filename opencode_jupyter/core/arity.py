"""How many words of a shell command name what it does (docs/opencode/core.md 12).

``git checkout main`` is a ``git checkout``; ``npm run dev -- --port 1`` is an ``npm run dev``. The names are what a
remembered permission is given for.
"""

from __future__ import annotations

from collections.abc import Sequence

_TWO = """
bazel brew bun cargo cdk cf cmake composer consul crictl deno docker eksctl firebase flyctl git go gradle helm heroku
hugo ip kind kubectl kustomize make mc minikube mongosh mysql mvn ng npm nvm nx openssl pip pipenv pnpm poetry podman
psql pulumi pyenv python rake rbenv redis-cli rustup serverless skaffold sls sst swift systemctl terraform tmux turbo
ufw vault vercel volta wp yarn
"""

_THREE = """
aws, az, doctl, gcloud, gh, sfdx, bun run, bun x, cargo add, cargo run, consul kv, deno task, docker builder,
docker compose, docker container, docker image, docker network, docker volume, eksctl create, git config, git remote,
git stash, ip addr, ip link, ip netns, ip route, kind create, kubectl kustomize, kubectl rollout, mc admin, npm exec,
npm init, npm run, npm view, openssl req, openssl x509, pnpm dlx, pnpm exec, pnpm run, podman container, podman image,
pulumi stack, terraform workspace, vault auth, vault kv, yarn dlx, yarn run
"""

ARITY: dict[str, int] = {
    **dict.fromkeys(_TWO.split(), 2),
    **dict.fromkeys((" ".join(name.split()) for name in _THREE.split(",")), 3),
}
"""Words that make the name, by the command's first word or words. Commands that are not here: one word."""

_LONGEST = max(len(name.split()) for name in ARITY)


def prefix(tokens: Sequence[str]) -> list[str]:
    """The words that name the command: the longest entry of `ARITY` that `tokens` begin with decides.

    Flags are words like any other: leave them out before if they should not count.
    """
    for length in range(min(len(tokens), _LONGEST), 0, -1):
        arity = ARITY.get(" ".join(tokens[:length]))
        if arity is not None:
            return list(tokens[:arity])
    return list(tokens[:1])
