"""What is wrong with this machine, or with the way to a server, and what to do about it."""
