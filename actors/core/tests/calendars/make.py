"""Writes the working days of countries as the Python package `holidays` knows them: data that this project has not made.

    python3 -m venv /tmp/calendars && /tmp/calendars/bin/pip install holidays==0.109
    /tmp/calendars/bin/python actors/core/tests/calendars/make.py

Each line of a file is a month and a digit for each of its days: 1 for a day that is worked.
"""

from calendar import monthrange
from datetime import date
from pathlib import Path

import holidays

YEARS = {"CN": range(2023, 2027), "DE": range(2020, 2036), "US": range(2021, 2031)}

for country, years in YEARS.items():
    lines = [f"# holidays {holidays.__version__}, {country}: 1 is a working day"]
    for year in years:
        known = holidays.country_holidays(country, years=year)
        for month in range(1, 13):
            days = (date(year, month, day + 1) for day in range(monthrange(year, month)[1]))
            lines.append(f"{year}-{month:02} " + "".join(str(int(known.is_working_day(day))) for day in days))
    (Path(__file__).parent / f"{country}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
