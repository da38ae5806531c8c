"""Closed word lists that tell whether a sentence can end here. English in detail, five languages in short."""

from __future__ import annotations

from dataclasses import dataclass

from voice_agent.text.chars import word_set
from voice_agent.text.phrases import phrase_set

FILLERS = word_set("um uh umm uhm er erm hmm mm ah eh")
THINKING = phrase_set(
    """let me think, let me see, let me check, let me look, i mean, you know, how do you say, how do i say,
    sort of, kind of, what's it called, you see"""
)
COMMANDS = phrase_set(
    """stop, wait, no, hold on, stop it, stop please, please stop, wait please, hang on, quiet, enough"""
)
ANSWERS = phrase_set(
    """yes, yes please, no thanks, no thank you, okay, ok, sure, thank you, thanks, thank you very much, thanks
    a lot, please, goodbye, bye, bye bye, good bye, hello, hi, hey, hi there, hello there, good morning,
    good evening, good afternoon, good night, right, that's right, that's all, that's it, that is all,
    that's correct, correct, exactly, of course, absolutely, definitely, never mind, go ahead, go on, i
    don't know, i'm not sure, not yet, not really, nothing, nothing else, both, neither, either one,
    perfect, great, fine, good, cool, sounds good, that's fine, all right, alright, yeah, yep, yup, nope,
    what, pardon, sorry, excuse me, why, why not, how come, when, where, who, how, got it, i see, me too,
    see you, see you later, help, done, i think so, i hope so, i guess so, i don't think so, maybe, perhaps,
    true, one moment, just a moment, one second, no problem, please do, i'm done, repeat, repeat please, say
    that again, again, cancel, continue, next, back, how much, how many, which one, what else, anything,
    whatever, not at all, very good, you too, it's fine, i'm fine, i'm good, come in, my pleasure, you're
    welcome"""
)
OPENERS = phrase_set(
    """hello, hi, hey, hi there, hello there, good morning, good evening, good afternoon, excuse me, sorry, pardon,
    okay, ok, right, all right, alright, thank you, thanks, great, perfect, one moment, just a moment, one second"""
)
"""Answers after which people often go on with what they want."""
LEADS = word_set(
    """so and but okay ok well um uh er erm hmm hi hello hey please sorry no yes yeah yep sure oh ah actually
    right wait thanks just now then also alright great perfect"""
)
YES_NO = word_set("yes no yeah yep nope sure well")

ARTICLES = word_set("a an the my your our their its every whose his")
CONJUNCTIONS = word_set("""and or but nor because if unless until whether while although whereas than cos""")
PREPOSITIONS = word_set(
    """of to for with at from by about into onto between through during without within against towards per via
    in on as under beside behind except since regarding concerning around"""
)
COPULAS = word_set("is are was were am be been being")
AUXILIARIES = word_set("can could will would shall should may might must do does did have has had")
BEFORE_MONTHS = word_set("of in this next last until since from to first second third fifth")
KNOWING = word_set("know knows say says tell me sure guess remember ask see since until depends")
NEGATED = word_set(
    """don't doesn't didn't can't couldn't won't wouldn't shouldn't isn't aren't wasn't weren't haven't hasn't
    hadn't mustn't cannot"""
)
SUBJECTS = word_set("i we they he she")
PRONOUNS = SUBJECTS | word_set("you it this that there these those")
WH = word_set("""what when where who whom whose why how which what's where's who's how's when's why's""")
RELATIVES = word_set("""what whatever nothing something anything everything all thing as if when whenever how where""")
CUT_CONTRACTIONS = word_set("it's that's there's he's she's what's where's who's how's here's let's")
INTENSIFIERS = word_set("very quite just only almost extremely double triple plus such even")
TRANSITIVES = word_set(
    """call book order buy reserve schedule change find get send give bring make take need want tell ask remind
    show add set rent use borrow choose contact return collect confirm"""
)
GIVING = word_set("tell give send show bring get let remind make buy find book")
VERB_BEFORE = word_set(
    """to please and i you we they can could would will should must just also i'll we'll i'd don't"""
)
OPEN_PARTICIPLES = word_set("trying wondering hoping planning")
OPINIONS = word_set("think guess believe suppose hope said says asked thought")
ADJECTIVES = word_set(
    """large small big little new old good nice great long short first second third last next same other
    different red blue black white green single best most nearest cheapest main whole right wrong"""
)
STRANDING = word_set(
    """look looking talk talking think thinking wait waiting ask asking pay paying search searching listen
    listening deal come coming belong speak speaking worry hear heard live care going go stand"""
)
PARTICLE_HOSTS = word_set(
    """log sign check come go hold move get turn switch plug try keep carry it them him her this that
    everything lights light tv radio join logged signed checked goes"""
)
SUBORDINATORS = word_set("if before although since while once unless whenever after")
IMPERATIVES = word_set(
    """tell play turn book remind cancel set send give say stop call open close show find add change read
    explain describe repeat write make put take bring check order buy help let let's go come wait start
    continue look try spell speak talk please hang leave keep move list name translate suggest recommend
    remove delete switch connect transfer order don't do answer finish sing count pick schedule reserve
    confirm forget skip ask"""
)
VERBS = word_set(
    """have has had need needs want wants like likes love think know knows live lives work works lost got get
    gets went go goes called paid bought came made said told see saw feel feels found forgot left leave
    leaves start starts cost costs take takes took look looks sound sounds smell smells seem seems mean
    means meant hope prefer remember understand hear heard speak speaks arrive arrives stay sent broke won
    fell gave met wrote ate began run runs keep kept put sit stand come comes agree hate enjoy eat drink
    drive play read use bring opens closes open close says"""
)


@dataclass(frozen=True, slots=True)
class OpenWords:
    """What a language with a short list knows."""

    open: frozenset[str]
    """Words that want more after them."""
    fillers: frozenset[str]
    answers: frozenset[str]
    """Phrases that are complete in themselves."""
    questions: frozenset[str]
    """Words that begin a question."""


OTHER: dict[str, OpenWords] = {
    "de": OpenWords(
        word_set(
            """der die das den dem des ein eine einen einem einer mein meine meinen meinem meiner dein deine ihr ihre
            unser kein keine und oder aber weil dass wenn ob als denn sondern für von zur zum beim im am ins vom
            nach bei durch gegen ohne zwischen um ist sind war waren bin wird werden möchte würde kann könnte soll
            muss will hat haben habe hatte ich wir sehr"""
        ),
        word_set("äh ähm öh hm also naja"),
        phrase_set(
            """ja, nein, danke, nein danke, ja bitte, ja gerne, bitte, stopp, stop, halt, warte, okay, ok, gut, genau,
            hallo, tschüss, auf wiederhören, auf wiedersehen, guten tag, guten morgen, vielen dank, das ist alles,
            ich weiß nicht"""
        ),
        word_set(
            """was wann wo wer wen wem warum wieso wie welche welcher welches woher wohin wieviel kann können haben
            hast ist sind gibt darf könnten könntest würden möchten wollen"""
        ),
    ),
    "es": OpenWords(
        word_set(
            """el la los las un una unos unas mi mis tu tus su sus y o u e pero porque que si cuando como de del a al
            con sin para por en entre desde hasta sobre es son era fue está están soy estoy quiero quisiera puedo
            necesito tengo me muy yo"""
        ),
        word_set("eh em este esto pues bueno"),
        phrase_set(
            """sí, si, no, gracias, no gracias, sí por favor, por favor, vale, claro, para, espera, hola, adiós, buenos
            días, buenas tardes, muchas gracias, de acuerdo, no sé, eso es todo, hasta luego, nada más, stop, alto"""
        ),
        word_set(
            """qué cuándo dónde quién quiénes por cómo cuál cuáles cuánto cuánta cuántos puede puedes podría hay tiene
            tienen tienes es está"""
        ),
    ),
    "fr": OpenWords(
        word_set(
            """le la les un une des du de d l mon ma mes ton ta tes son sa ses notre votre leur et ou mais parce que qu
            si quand comme à au aux avec sans pour par dans en entre sur chez est sont était suis c'est j'ai je nous
            ils elle voudrais veux peux très qui"""
        ),
        word_set("euh heu hum ben bah alors"),
        phrase_set(
            """oui, non, merci, non merci, oui s'il vous plaît, s'il vous plaît, stop, attendez, attends, d'accord, ok,
            bonjour, bonsoir, au revoir, salut, merci beaucoup, c'est tout, je ne sais pas, arrête, arrêtez, bien
            sûr"""
        ),
        word_set(
            """quel quelle quels quelles où qui quand pourquoi comment combien est-ce que qu'est-ce pouvez-vous
            avez-vous peux-tu pourriez-vous y"""
        ),
    ),
    "it": OpenWords(
        word_set(
            """il lo la i gli le un uno una mio mia miei mie tuo tua suo sua nostro e ed o ma perché che se quando come
            di del della dei a al alla da dal in nel nella con su sul per tra fra è sono era vorrei voglio posso
            devo ho mi molto io non"""
        ),
        word_set("ehm eh allora cioè mah"),
        phrase_set(
            """sì, si, no, grazie, no grazie, sì grazie, per favore, basta, aspetta, fermati, ciao, buongiorno,
            buonasera, arrivederci, va bene, certo, grazie mille, non lo so, è tutto, ok, stop, esatto"""
        ),
        word_set(
            """che cosa cos'è quando dove chi perché come quale quali quanto quanta quanti può puoi potrebbe potresti
            c'è ci avete hai"""
        ),
    ),
    "pt": OpenWords(
        word_set(
            """o a os as um uma uns umas meu minha meus minhas seu sua teu tua e ou mas porque que se quando como de do
            da dos das em no na nos nas com sem para por pelo pela entre até sobre é são era foi está estou sou
            quero queria gostaria posso preciso tenho me muito eu"""
        ),
        word_set("hum ahn éh então tipo"),
        phrase_set(
            """sim, não, obrigado, obrigada, não obrigado, não obrigada, sim por favor, por favor, para, espera, pare,
            espere, olá, oi, tchau, adeus, bom dia, boa tarde, boa noite, está bem, tá bom, claro, não sei, é só
            isso, ok, certo"""
        ),
        word_set("""qual quais quando onde quem por como quanto quanta quantos pode podes poderia há tem têm"""),
    ),
}
