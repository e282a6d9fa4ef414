"""The contest: all rules against all attacks, and which of them is never far behind the best."""

from fedra.contest.entering import Contest
from fedra.contest.programme import Programme, read_programme
from fedra.contest.reference import CONTEST
from fedra.contest.standings import Standing, standings
from fedra.contest.tables import contest_tables

__all__ = ["CONTEST", "Contest", "Programme", "Standing", "contest_tables", "read_programme", "standings"]
