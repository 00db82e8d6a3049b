"""Who may ask: hosts, origins, tokens, and how much at once."""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any, final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LOOPBACK", "Guard"]

# Names under which this machine calls itself.
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
_COOKIE = "streamgp-token"
# Pages run no foreign script, load nothing from elsewhere, and are shown in no frame.
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with none at all, browsers hide the origin of forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@final
class Guard:
    """Refuses requests that are too large, come from pages of others, or have no token, before anything reads them."""

    def __init__(self, app: ASGIApp, *, token: str | None, most_bytes: int) -> None:
        """Stand in front of an application.

        Args:
            app: What answers.
            token: What a request must know; None for none.
            most_bytes: Of the body of a request.
        """
        self._app, self._token, self._most_bytes = app, token, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(Request(scope))
        body = b"" if refused is not None else await self._body(Headers(scope=scope), receive)
        if body is None:
            refused = _refuse(
                413, f"The request is too large: at most {self._most_bytes:,} bytes. Send less at a time."
            )
        answer: ASGIApp = self._app if refused is None else refused
        await answer(scope, _replayed(body or b"", receive), _with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD") and _is_foreign(request.headers):
            return _refuse(403, "This request came from a page of somebody else.")
        if self._token is None:
            return None
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given):
            return None
        if self._is_token(request.cookies.get(_COOKIE, "")):
            return None
        if request.method == "GET" and self._is_token(request.query_params.get("token", "")):
            entered = RedirectResponse(request.url.path, status_code=303)
            entered.set_cookie(
                _COOKIE, self._token, httponly=True, samesite="strict", secure=request.url.scheme == "https"
            )
            return entered
        return _refuse(
            401, "A token is needed: open the address that `streamgp serve` printed, or send it as a bearer."
        )

    def _is_token(self, given: str) -> bool:
        return self._token is not None and secrets.compare_digest(given.encode(), self._token.encode())

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """Read the body; None if it is too long."""
        announced = headers.get("content-length", "0")
        if not announced.isdigit() or int(announced[:20]) > self._most_bytes:
            return None
        parts, num_bytes = [], 0
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            num_bytes += len(parts[-1])
            if num_bytes > self._most_bytes:
                return None
            if not message.get("more_body", False):
                return b"".join(parts)


def _is_foreign(headers: Headers) -> bool:
    """Tell whether a browser says that a request comes from a page of another origin."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return True
    return headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")


def _refuse(code: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status_code=code)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Pass on a body that was read, and then whatever comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def _with_headers(send: Send) -> Callable[[Any], Awaitable[None]]:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
            MutableHeaders(scope=message).setdefault("cache-control", "no-store")
        await send(message)

    return sent
