"""Which model a session talks to, from a name such as `anthropic:claude-sonnet-4-5` and the environment.

    scripted:FILE        the offline model with that script (docs/models.md)
    anthropic:NAME       ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
    openai:NAME          OPENAI_API_KEY, OPENAI_BASE_URL; any server that speaks chat completions, local ones too
    responses:NAME       the same keys, for servers that speak the responses wire
    google:NAME          GOOGLE_API_KEY or GEMINI_API_KEY, GOOGLE_BASE_URL

With no name, STOPWARDEN_MODEL; with neither, the first provider that has a key, and without any key the
offline model with a script of its own that says so. A window that is not the usual one of the provider
is given behind the name: `openai:qwen3@32768`. Keys are read from the environment and never written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core.errors import SettingError
from stopwarden.models.script import Reply
from stopwarden.models.scripted import Scripted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from pydantic_ai.models import Model as ProviderModel

    from stopwarden.models.port import Model, ModelEvent, Request

# provider: where its key may stand, its usual window in tokens, the model that is taken when only a key is there
KEYS: Mapping[str, tuple[tuple[str, ...], int, str]] = {
    "anthropic": (("ANTHROPIC_API_KEY",), 200_000, "claude-sonnet-4-5"),
    "openai": (("OPENAI_API_KEY",), 128_000, "gpt-5"),
    "responses": (("OPENAI_API_KEY",), 128_000, ""),
    "google": (("GOOGLE_API_KEY", "GEMINI_API_KEY"), 1_000_000, "gemini-2.5-pro"),
}
NO_KEY = (
    "I am the offline model: no key of a provider is configured, so I only answer from a script. "
    "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GOOGLE_API_KEY, or give me a script with --model scripted:FILE."
)
STUCK_SECONDS = 300.0  # without a byte; a provider that thinks sends pings
LOCAL = "no-key-needed"  # SDKs want some key even where a local server asks for none


def choose(name: str, env: Mapping[str, str]) -> Model:
    """The model of that name. Raises SettingError for a name or a key that is missing, ScriptError for a bad script.

    Nothing of a provider is imported before a session sends.
    """
    name = name or env.get("STOPWARDEN_MODEL", "") or _by_key(env)
    if not name:
        return Scripted(lambda _: Reply(text=NO_KEY), name="offline")
    provider, _, rest = name.partition(":")
    if provider == "scripted":
        return Scripted.from_file(rest)
    if provider not in KEYS or not rest:
        known = ", ".join(f"{one}:NAME" for one in KEYS)
        raise SettingError(f"There is no model {name!r}", kept="Nothing was run", do=f"Use scripted:FILE, {known}")
    model, _, window = rest.partition("@")
    if window and not window.isdecimal():
        raise SettingError(
            f"{window!r} is no number of tokens", kept="Nothing was run", do=f"Write {provider}:NAME@65536"
        )
    keys, usual, _ = KEYS[provider]
    key = next((env[one] for one in keys if env.get(one)), "")
    base = env.get(f"{'OPENAI' if provider == 'responses' else provider.upper()}_BASE_URL", "")
    if not key and not base:
        raise SettingError(
            f"{name} needs a key", kept="Nothing was run", do=f"Set {keys[0]}, or the base address of a local server"
        )
    return LateProvider(provider, model, key or LOCAL, base, name=name, window=int(window or usual))


def _by_key(env: Mapping[str, str]) -> str:
    """The first provider that has a key."""
    for provider, (keys, _, model) in KEYS.items():
        if model and any(env.get(key) for key in keys):
            return f"{provider}:{model}"
    return ""


class LateProvider:
    """A provider's model that is made, and its SDK imported, at the first request."""

    sees_images = True

    def __init__(self, provider: str, model: str, key: str, base: str, *, name: str, window: int) -> None:
        self._how = (provider, model, key, base)
        self.name, self.window = name, window
        self._made: Model | None = None

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """See `port.Model`."""
        return self._model().stream(request)

    async def count_tokens(self, request: Request) -> int:
        """See `port.Model`."""
        return await self._model().count_tokens(request)

    async def close(self) -> None:
        """See `port.Model`."""
        if self._made is not None:
            await self._made.close()

    def _model(self) -> Model:
        if self._made is None:
            from stopwarden.models.providers import Provider

            model, close = _provider(*self._how)
            self._made = Provider(model, close, name=self.name, window=self.window, sees_images=True)
        return self._made


def _provider(provider: str, model: str, key: str, base: str) -> tuple[ProviderModel, Callable[[], Awaitable[None]]]:
    """pydantic-ai's model for this name, and what closes its connections; SDK retries off (see `providers`)."""
    if provider == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        anthropic = AsyncAnthropic(api_key=key, base_url=base or None, max_retries=0)
        return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=anthropic)), anthropic.close
    if provider == "google":
        from httpx2 import AsyncClient
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        client = AsyncClient(timeout=STUCK_SECONDS)
        google = GoogleProvider(api_key=key, base_url=base or None, http_client=client)
        return GoogleModel(model, provider=google), client.aclose
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    openai = AsyncOpenAI(api_key=key, base_url=base or None, max_retries=0)
    kind = OpenAIResponsesModel if provider == "responses" else OpenAIChatModel
    return kind(model, provider=OpenAIProvider(openai_client=openai)), openai.close
