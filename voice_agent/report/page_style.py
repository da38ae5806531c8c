"""The style of the report's page. Every bar has its name beside it: nothing depends on colours alone."""

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#57606a;--line:#d0d7de;--track:#f1f3f5;--over:#b42318;
--endpointing:#7a5195;--recognition:#1f77b4;--first_token:#0f8a7e;--first_clause:#4c9a2a;--synthesis:#b8860b;
--hold:#8c959f;--send:#c2410c;--whole:#57606a}
@media(prefers-color-scheme:dark){:root{--bg:#0f1317;--fg:#e6edf3;--dim:#9aa4ae;--line:#30363d;--track:#1b2128;
--over:#ff8a7a;--endpointing:#b794d6;--recognition:#6cb2eb;--first_token:#4fd1c5;--first_clause:#8fd16f;
--synthesis:#e3b341;--hold:#7d8590;--send:#ff9e64;--whole:#9aa4ae}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2.5rem 0 0;overflow-wrap:anywhere}h3{font-size:1rem;margin:0 0 .4rem}
p{margin:.2rem 0}.note{color:var(--dim);font-size:.9rem}.over{color:var(--over)}
.scroll{overflow-x:auto;margin-top:1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%;font-size:.9rem}
th,td{padding:.3rem .5rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child{text-align:left;font-weight:500}thead th{color:var(--dim);font-weight:500}
tbody tr:first-child{font-weight:700}
.meter{display:inline-block;width:6rem;height:.6rem;background:var(--track);vertical-align:middle}
.meter i{display:block;height:100%}
.legend{display:flex;flex-wrap:wrap;gap:.3rem 1rem;list-style:none;padding:0;margin:1rem 0;font-size:.9rem}
.dot{display:inline-block;width:.7rem;height:.7rem;border-radius:2px;margin-right:.4rem}
.mark{display:inline-block;width:0;height:.9rem;border-left:2px dashed var(--fg);margin:0 .5rem 0 .3rem;
vertical-align:middle}
article{border-top:1px solid var(--line);padding:.8rem 0;margin-top:.8rem;overflow-wrap:anywhere}
article b{color:var(--dim);font-weight:500;display:inline-block;min-width:3.5rem}
article em{color:var(--over)}
.waterfall{list-style:none;margin:.4rem 0;padding:0;font-size:.85rem;font-variant-numeric:tabular-nums}
.waterfall li{display:grid;grid-template-columns:11rem 1fr 3.5rem;gap:.6rem;align-items:center}
.name{color:var(--dim)}.ms{text-align:right}
.track{position:relative;height:1.1rem;background:var(--track)}
.track i{position:absolute;top:.15rem;bottom:.15rem;min-width:2px;border-radius:2px}
.track u{position:absolute;top:0;bottom:0;border-left:2px dashed var(--fg);opacity:.6}
@media(max-width:36rem){.waterfall li{grid-template-columns:7.5rem 1fr 3rem}}
.endpointing{background:var(--endpointing)}.recognition{background:var(--recognition)}
.first_token{background:var(--first_token)}.first_clause{background:var(--first_clause)}
.synthesis{background:var(--synthesis)}.hold{background:var(--hold)}.send{background:var(--send)}
.whole{background:var(--whole)}
@media print{*{print-color-adjust:exact}article{break-inside:avoid}}
"""
