"""The agent for programs that embed it; `voice_agent` itself re-exports what is public."""
