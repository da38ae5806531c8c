"""How signs are said, per language. Numbers stay figures: the voice reads them in its own language."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpokenWords:
    and_: str
    percent: str
    at: str
    dot: str
    dash: str
    underscore: str
    plus: str
    minus: str
    times: str
    equals: str
    less: str
    greater: str
    degrees: str
    number: str
    to: str
    """Between the ends of a range: "3 to 5"."""
    link: str
    code_omitted: str
    currencies: dict[str, tuple[str, str]]
    """Per ISO 4217 code: singular, plural."""
    cents: tuple[str, str]
    """The hundredth part, said only where it stands alone or is below ten."""
    pence: tuple[str, str]


_ENGLISH = SpokenWords(
    "and", "percent", "at", "dot", "dash", "underscore", "plus", "minus", "times", "equals", "less than",
    "greater than", "degrees", "number", "to", "link", "code omitted",
    {"USD": ("dollar", "dollars"), "EUR": ("euro", "euros"), "GBP": ("pound", "pounds")},
    ("cent", "cents"), ("penny", "pence"),
)  # fmt: skip

WORDS: dict[str, SpokenWords] = {
    "en": _ENGLISH,
    "de": SpokenWords(
        "und", "Prozent", "at", "Punkt", "Bindestrich", "Unterstrich", "plus", "minus", "mal", "gleich", "kleiner als",
        "gr\u00f6\u00dfer als", "Grad",
        "Nummer", "bis", "Link", "Code ausgelassen",
        {"USD": ("Dollar", "Dollar"), "EUR": ("Euro", "Euro"), "GBP": ("Pfund", "Pfund")},
        ("Cent", "Cent"), ("Penny", "Pence"),
    ),
    "es": SpokenWords(
        "y", "por ciento", "arroba", "punto", "gui\u00f3n", "guion bajo", "m\u00e1s", "menos", "por", "igual a",
        "menor que", "mayor que", "grados", "n\u00famero", "a", "enlace", "c\u00f3digo omitido",
        {"USD": ("d\u00f3lar", "d\u00f3lares"), "EUR": ("euro", "euros"), "GBP": ("libra", "libras")},
        ("c\u00e9ntimo", "c\u00e9ntimos"), ("penique", "peniques"),
    ),
    "fr": SpokenWords(
        "et", "pour cent", "arobase", "point", "tiret", "tiret bas", "plus", "moins", "fois", "\u00e9gale",
        "inf\u00e9rieur \u00e0", "sup\u00e9rieur \u00e0", "degr\u00e9s", "num\u00e9ro", "\u00e0", "lien", "code omis",
        {"USD": ("dollar", "dollars"), "EUR": ("euro", "euros"), "GBP": ("livre", "livres")},
        ("centime", "centimes"), ("penny", "pence"),
    ),
    "it": SpokenWords(
        "e", "per cento", "chiocciola", "punto", "trattino", "trattino basso", "pi\u00f9", "meno", "per", "uguale",
        "minore di", "maggiore di", "gradi", "numero", "a", "link", "codice omesso",
        {"USD": ("dollaro", "dollari"), "EUR": ("euro", "euro"), "GBP": ("sterlina", "sterline")},
        ("centesimo", "centesimi"), ("penny", "pence"),
    ),
    "pt": SpokenWords(
        "e", "por cento", "arroba", "ponto", "h\u00edfen", "sublinhado", "mais", "menos", "vezes", "igual a",
        "menor que", "maior que", "graus",
        "n\u00famero", "a", "link", "c\u00f3digo omitido",
        {"USD": ("d\u00f3lar", "d\u00f3lares"), "EUR": ("euro", "euros"), "GBP": ("libra", "libras")},
        ("c\u00eantimo", "c\u00eantimos"), ("p\u00eani", "pence"),
    ),
}  # fmt: skip


def words_of(language: str) -> SpokenWords:
    """The words of a language given as an ISO 639-1 code, with or without a region; English where none are known."""
    return WORDS.get(language.replace("_", "-").split("-")[0].casefold(), _ENGLISH)


ABBREVIATIONS: dict[str, dict[str, str]] = {
    "en": {
        "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Dr": "Doctor", "Prof": "Professor", "Rev": "Reverend",
        "Jr": "Junior", "Sr": "Senior", "Inc": "Incorporated", "Ave": "Avenue", "Rd": "Road", "Blvd": "Boulevard",
        "Gov": "Governor", "Sen": "Senator", "Gen": "General", "e.g": "for example", "E.g": "For example",
        "i.e": "that is", "I.e": "That is", "vs": "versus", "approx": "approximately", "etc": "et cetera",
        "dept": "department",
    },
    "de": {"Dr": "Doktor", "Prof": "Professor", "z.b": "zum Beispiel", "d.h": "das hei\u00dft", "usw": "und so weiter",
           "bzw": "beziehungsweise", "Nr": "Nummer", "ca": "circa"},
    "es": {"Sr": "se\u00f1or", "Sra": "se\u00f1ora", "Srta": "se\u00f1orita", "Dr": "doctor", "Dra": "doctora",
           "etc": "etc\u00e9tera", "Ud": "usted", "Uds": "ustedes"},
    "fr": {"Mme": "Madame", "Mlle": "Mademoiselle", "Dr": "Docteur", "etc": "et cetera"},
    "it": {"Sig": "signor", "sig": "signor", "Dott": "dottor", "Prof": "professor", "ecc": "eccetera"},
    "pt": {"Sr": "senhor", "Sra": "senhora", "Dr": "doutor", "Dra": "doutora", "etc": "et cetera"},
}  # fmt: skip
"""Said in full, because a voice takes their full stop for the end of a sentence."""
