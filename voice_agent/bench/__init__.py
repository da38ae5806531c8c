"""The simulated caller: speaks a script to an agent over WebRTC and measures from outside what a caller would hear."""
