/*
 * Asks the parser and the matching rule of Debian's cron when expressions fire. Built by prepare.sh around the sources of
 * the package `cron`: its main file is included here with another name for `main`, and `job_add`, which would start a
 * command, notes the minute instead. Nothing of cron's rules is written down in this file.
 *
 *	harness FROM UNTIL COUNT < EXPRESSIONS     instants are seconds since 1970, UTC
 *
 * Answers a line for each: `ERR` or at most COUNT instants after FROM and not after UNTIL.
 */
#define main cron_main
#include "cron.c"
#undef main

#define EXPRESSIONS_MAX 100000

static int count_max;
static time_min minute_now;
static long *fires;
static int *counts;
static entry **entries;
static int entry_count;

/* An entry's place is kept in its uid: nothing is started, so nobody else looks at it. */
void
job_add(entry *e, user *u)
{
	int at = (int)e->uid;

	(void)u;
	if (counts[at] < count_max)
		fires[(long)at * count_max + counts[at]++] = (long)minute_now * 60;
}

int
job_runqueue(void)
{
	return 0;
}

static void
ignore(char *message)
{
	(void)message;
}

int
main(int argc, char **argv)
{
	char line[4096], *environment[] = { NULL };
	struct passwd pw;
	user u;
	cron_db db;

	if (argc != 4)
		return 2;
	count_max = atoi(argv[3]);
	fires = calloc((size_t)EXPRESSIONS_MAX * count_max, sizeof *fires);
	counts = calloc(EXPRESSIONS_MAX, sizeof *counts);
	entries = calloc(EXPRESSIONS_MAX, sizeof *entries);
	memset(&pw, 0, sizeof pw);
	memset(&u, 0, sizeof u);
	memset(&db, 0, sizeof db);
	pw.pw_name = "nobody";
	pw.pw_dir = "/";
	while (entry_count < EXPRESSIONS_MAX && fgets(line, sizeof line - 8, stdin) != NULL) {
		FILE *file;
		entry *e;

		line[strcspn(line, "\n")] = '\0';
		strcat(line, " true\n");
		file = fmemopen(line, strlen(line), "r");
		e = load_entry(file, ignore, &pw, environment);
		fclose(file);
		/* A comment or a setting is no entry of its own. */
		if (e != NULL) {
			e->uid = (uid_t)entry_count;
			e->next = u.crontab;
			u.crontab = e;
		}
		entries[entry_count++] = e;
	}
	db.head = db.tail = &u;
	for (minute_now = atol(argv[1]) / 60 + 1; minute_now <= atol(argv[2]) / 60; minute_now++)
		find_jobs(minute_now, &db, TRUE, TRUE);
	for (int at = 0; at < entry_count; at++) {
		if (entries[at] == NULL)
			printf("ERR");
		for (int n = 0; n < counts[at]; n++)
			printf(n ? " %ld" : "%ld", fires[(long)at * count_max + n]);
		printf("\n");
	}
	return 0;
}
