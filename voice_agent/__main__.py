"""`python -m voice_agent` is the console script `voice-agent`."""

from __future__ import annotations

import sys

from voice_agent.cli.main import main

sys.exit(main())
