"""Languages a caller may speak: what the multilingual Whisper models know, which is what recognises them."""

from __future__ import annotations

import re

_WHISPER = """
af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr ht hu hy id is it ja
jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps pt ro ru sa sd si sk sl sn so sq
sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo yue zh
"""
CODES = frozenset(_WHISPER.split())
LANGUAGE = re.compile("|".join(sorted({"auto", *CODES})))
ALLOWED = "a language code that Whisper knows, such as en, de or zh, or auto"
