"""``switchyard serve``: the policy as an HTTP server."""

from __future__ import annotations

import ipaddress
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from switchyard_core.cli import cannot_run, default_policy, faults, installed_registry
from switchyard_core.cli.replaying import replay_options, unused_note
from switchyard_core.cli.words import Number

if TYPE_CHECKING:
    from switchyard_core.plugins import PluginRegistry
    from switchyard_core.policy import Policy
    from switchyard_core.replay import Replay
    from switchyard_core.server import SwitchyardApp
    from switchyard_core.server.access import Limits
    from switchyard_core.server.reload import Reloader

__all__ = ["command"]

_LOG = logging.getLogger("switchyard")
_Given = TypeVar("_Given")


@click.command(name="serve")
@click.argument("policy", required=False, type=click.Path())
@click.option("--config", type=click.Path(), hidden=True, help="The same as POLICY.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=4000,
    show_default=True,
    type=Number(0, 65535),
    metavar="PORT",
    help="Port; 0 picks one.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=Number(1, 256),
    metavar="N",
    help="Worker processes.",
)
@click.option("--dry-run", is_flag=True, help="Answer with explanations; call no provider.")
@click.option("--reload", is_flag=True, help="Reload the policy when its files change.")
@click.option(
    "--max-body",
    type=Number(1),
    metavar="BYTES",
    help="Maximum body size (default: 64 MiB).",
)
@click.option(
    "--limit",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Another limit, such as connections=50; repeatable.",
)
@click.option("--api-key-env", metavar="VAR", help="Variable with the key that callers must send.")
@click.option("--insecure", is_flag=True, help="Allow listening beyond loopback without a key.")
@click.option(
    "--allowed-host", multiple=True, metavar="NAME", help="Host name to accept as well; repeatable."
)
@click.option(
    "--allowed-origin",
    multiple=True,
    metavar="ORIGIN",
    help="Origin whose web pages may call; repeatable.",
)
@click.option(
    "--log-bodies",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write received and sent request bodies to files.",
)
@replay_options
@click.pass_context
def command(  # noqa: PLR0913 - click passes options by name
    ctx: click.Context,
    *,
    policy: str | None,
    config: str | None,
    host: str,
    port: int,
    workers: int,
    dry_run: bool,
    reload: bool,
    max_body: int | None,
    limit: tuple[str, ...],
    api_key_env: str | None,
    insecure: bool,
    allowed_host: tuple[str, ...],
    allowed_origin: tuple[str, ...],
    log_bodies: Path | None,
    replay: Replay | None,
) -> None:
    """Serve a policy over HTTP until SIGTERM or Ctrl-C; SIGHUP reloads it.

    POLICY is switchyard.toml unless you name another.
    Exits 0 after a signal, 1 when the policy has errors, 2 when it cannot run.
    Example: switchyard serve policies/plan_execute.toml
    """
    from switchyard_core.hookspecs import VERSION  # noqa: PLC0415  # fast --help
    from switchyard_core.server.access import Limits, host_name, origin_name  # noqa: PLC0415  # fast --help
    from switchyard_core.server.run import bind, run, url_of  # noqa: PLC0415  # fast --help
    from switchyard_core.server.workers import run_workers  # noqa: PLC0415  # fast --help

    if policy is not None and config is not None:
        raise click.UsageError("name one policy: --config is another way to write POLICY")
    policy = policy or config or default_policy()
    key = _server_key(host, api_key_env, insecure=insecure)
    limits = _given("--limit", lambda: Limits.from_words(limit))
    _given("--allowed-host", lambda: [*map(host_name, allowed_host)])
    _given("--allowed-origin", lambda: [*map(origin_name, allowed_origin)])
    if workers > 1 and log_bodies is not None:
        raise click.UsageError("--log-bodies numbers its files, so it requires --workers 1")
    _check_replay(replay, workers=workers, dry_run=dry_run)
    # Recorded calls need no key; a missing one is an error only when it is needed.
    keyless = dry_run or replay is not None
    registry = installed_registry(ctx)
    checked = _checked(ctx, policy, registry, workers, keyless=keyless)
    options = _Options(
        policy=policy,
        max_body=max_body,
        limits=limits,
        server_key=key,
        # With the key any name may be used: no web page has it.
        allowed_hosts=allowed_host if allowed_host or key is None else None,
        allowed_origins=allowed_origin,
        log_bodies=log_bodies,
        dry_run=dry_run,
        workers=workers,
        reload=reload,
        keyless=keyless,
    )
    try:
        with faults(ctx):
            app = _made(options, checked, registry, replay)
    except OSError as error:
        cannot_run(ctx, f"cannot write to {log_bodies}: {error.strerror}")
    try:
        listener = bind(host, port)
    except OSError as error:
        cannot_run(ctx, f"cannot listen on {host}:{port}: {error.strerror}")
    routes = ", ".join(route.id for route in checked.routes.values())

    def ready() -> None:
        url = url_of(listener)
        click.echo(f"switchyard {VERSION} ready on {url} (routes: {routes or 'none'})")

    if workers == 1:
        run(app, listener, ready=ready, reloader=_reloader(app, options))
        if note := unused_note(replay):
            _LOG.warning(note)
    elif not run_workers(partial(_build, options), listener, workers, ready=ready):
        cannot_run(ctx, "a worker ended unexpectedly; its output above says why")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """Settings of an application, in this process or in a worker."""

    policy: str
    max_body: int | None
    limits: Limits
    server_key: str | None
    allowed_hosts: tuple[str, ...] | None
    allowed_origins: tuple[str, ...]
    log_bodies: Path | None
    dry_run: bool
    workers: int
    reload: bool
    keyless: bool


def _build(options: _Options) -> tuple[SwitchyardApp, Reloader]:
    """Return the application of a worker, which shares nothing with its parent."""
    from switchyard_core.plugins import PluginRegistry  # noqa: PLC0415  # fast --help
    from switchyard_core.policy import load_policy  # noqa: PLC0415  # fast --help

    registry = PluginRegistry.from_entry_points()
    app = _made(options, load_policy(options.policy, registry), registry)
    return app, _reloader(app, options)


def _reloader(app: SwitchyardApp, options: _Options) -> Reloader:
    from switchyard_core.policy import check_workers  # noqa: PLC0415  # fast --help
    from switchyard_core.server.reload import POLL_S, Reloader  # noqa: PLC0415  # fast --help

    registry = app.engine.registry
    who = f"worker {os.getpid()}: " if options.workers > 1 else ""
    return Reloader(
        app,
        options.policy,
        say=lambda line: click.echo(f"{who}{line}", err=True),
        environ=None if options.keyless else os.environ,
        also=lambda policy: check_workers(policy, registry, options.workers),
        poll_s=POLL_S if options.reload else None,
    )


def _made(
    options: _Options, policy: Policy, registry: PluginRegistry, replay: Replay | None = None
) -> SwitchyardApp:
    from switchyard_core.switchyard import Switchyard  # noqa: PLC0415  # fast --help

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # The ready line and the exit code replace uvicorn's messages.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    size = {} if options.max_body is None else {"max_body": options.max_body}
    return Switchyard.from_loaded(policy, registry, replay=replay).asgi(
        **size,
        limits=options.limits,
        server_key=options.server_key,
        allowed_hosts=options.allowed_hosts,
        allowed_origins=options.allowed_origins,
        log_bodies=options.log_bodies,
        dry_run=options.dry_run,
    )


def _server_key(host: str, variable: str | None, *, insecure: bool) -> str | None:
    """Return the key that callers must send; a usage error without a usable one."""
    from switchyard_core.policy.secrets import shown  # noqa: PLC0415  # fast --help
    from switchyard_core.policy.values import is_variable  # noqa: PLC0415  # fast --help
    from switchyard_core.server.access import sendable  # noqa: PLC0415  # fast --help

    if variable is not None:
        if not is_variable(variable):
            raise click.UsageError(
                "--api-key-env: name the environment variable that holds the key, not the key "
                "itself: a name has letters, digits and underscores"
            )
        key = os.environ.get(variable, "").strip()
        if not key:
            raise click.UsageError(
                f"--api-key-env: the variable `{shown(variable)}` is not set or empty"
            )
        if not sendable(key):
            raise click.UsageError(
                f"--api-key-env: the key in `{shown(variable)}` has characters that callers cannot "
                "send in a header: use printable ASCII"
            )
        return key
    if not _is_loopback(host) and not insecure:
        raise click.UsageError(
            f"--host {host} can be reached from other machines: name the variable that holds a "
            "key for callers with --api-key-env VAR, or pass --insecure"
        )
    return None


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _given(option: str, read: Callable[[], _Given]) -> _Given:
    try:
        return read()
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None


def _check_replay(replay: Replay | None, *, workers: int, dry_run: bool) -> None:
    if replay is None:
        return
    if workers > 1:
        raise click.UsageError(
            "--record and --replay count calls in one process, so they require --workers 1"
        )
    if dry_run:
        raise click.UsageError(
            "--dry-run calls no provider, so there is nothing for --record or --replay to do"
        )


def _checked(
    ctx: click.Context, name: str, registry: PluginRegistry, workers: int, *, keyless: bool
) -> Policy:
    from switchyard_core.policy import check_policy, check_workers  # noqa: PLC0415  # fast --help

    result = check_policy(name, registry, environ=None if keyless else os.environ)
    findings, policy = list(result.findings), result.policy
    if policy is not None:
        findings += check_workers(policy, registry, workers)
    for finding in findings:
        click.echo(finding.render(), err=True)
    if policy is None or any(finding.severity == "error" for finding in findings):
        ctx.exit(2 if any(finding.code == "SY100" for finding in findings) else 1)
    return policy
