from dataclasses import dataclass
import zlib, numpy as np
@dataclass(frozen=True, slots=True)
class Evidence:
    text: str; no_speech: float; log_probability: float; seconds: float; loudness: float; hint: str=""
def clean_transcript(e): 
    global LAST; LAST=e
    return e.text
def compression_ratio(t):
    b=t.encode(); return len(b)/len(zlib.compress(b)) if b else 0
def is_loop(t): return False
def loudest_dbfs(s):
    x=s.astype(np.float32)/32768; n=1600
    if not x.size: return -120.
    w=[x[i:i+n] for i in range(0,len(x),n)]
    return max(20*np.log10(np.sqrt((q**2).mean())+1e-6) for q in w)
LAST=None
