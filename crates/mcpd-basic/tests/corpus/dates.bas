' Dates are read, taken apart, moved and compared.
d = DATE("2026-01-31")
TALK d, YEAR(d), MONTH(d), DAY(d)
TALK DATE("2026-01-31 17:30"), DATE("2026-01-31T17:30:05"), DATE(2024, 2, 29)
TALK DATEADD(d, 1, "month"), DATEADD(d, -1, "day"), DATEADD(d, 2, "weeks"), DATEADD(d, 90, "minutes")
TALK DATEDIFF(d, DATE("2026-03-01"), "days"), DATEDIFF(d, DATE("2027-01-30"), "year"), DATEDIFF(d, DATE("2026-01-01"), "week")
TALK d < DATE("2026-02-01"), d = DATE("2026-01-31 00:00"), "due " + d
TALK TODAY() > DATE("2020-01-01"), NOW() >= TODAY(), [d]
