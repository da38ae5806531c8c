"""Calls without a network: a recording as the caller, or this machine's microphone and loudspeaker."""
