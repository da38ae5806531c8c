"""Every error the program raises on purpose.

VoiceAgentError
├── ConfigError          a setting is unknown or impossible; the message names the key and what is allowed
├── ModelError           a model file is missing, broken or cannot be fetched; the message says what to do next
├── EngineError          a model failed at run time; carries `engine` and a stable `code`
├── OfferError           a WebRTC offer cannot be served; carries an HTTP `status` and a stable `code`
└── TransportClosed      the other side of a call is gone
"""

from __future__ import annotations


class VoiceAgentError(Exception):
    """Base of all of them; `str(error)` is fit for a user."""


class ConfigError(VoiceAgentError):
    """A setting is unknown or impossible."""


class ModelError(VoiceAgentError):
    """A model file is missing, broken or cannot be fetched."""


class EngineError(VoiceAgentError):
    """A model failed at run time. `engine` says which, `code` what in one stable word."""

    def __init__(self, engine: str, code: str, message: str) -> None:
        super().__init__(f"{engine}: {message}")
        self.engine = engine
        self.code = code


class OfferError(VoiceAgentError):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class TransportClosed(VoiceAgentError):
    """The call is over."""
