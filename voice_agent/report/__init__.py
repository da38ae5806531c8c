"""Where the time of every turn went: reads what `session.trace` wrote and shows it as tables or as a page."""

from voice_agent.report.figures import PERCENTILES, percentile, summary
from voice_agent.report.page import page
from voice_agent.report.reading import CallReport, read_report
from voice_agent.report.tables import summary_table, table

__all__ = ["PERCENTILES", "CallReport", "page", "percentile", "read_report", "summary", "summary_table", "table"]
