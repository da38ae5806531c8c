"""One conversation on this machine: a file or a microphone for the caller, the same session and engines as a server."""
