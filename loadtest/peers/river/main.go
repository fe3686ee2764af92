// One-time and periodic jobs on River. Called by `campanile-loadtest peers`; the lines it prints are described in ../README.md.
//
// Settings: those of River's own benchmark command (up to 2,000 workers, fetches at most every 2 ms, at least every 20 ms), which its
// comments call much better than the defaults; insertion with COPY (InsertManyFast); its default completer, which works in batches.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	maxWorkers    = 2000
	fetchCooldown = 2 * time.Millisecond
	fetchPoll     = 20 * time.Millisecond
	connections   = 10
	insertBatch   = 10_000
	lateBatch     = 10_000
	// Late bodies count until so long after the window.
	grace = time.Second
	// For completions that are still on their way.
	settle = 500 * time.Millisecond
)

type bodyArgs struct{}

func (bodyArgs) Kind() string { return "body" }

// window counts the bodies whose instant falls into it.
type window struct {
	fromUs, untilUs int64
	late            []int64
	counted         atomic.Int64
	// Bodies that began since the window did, whenever they were due.
	began atomic.Int64
}

type body struct {
	river.WorkerDefaults[bodyArgs]
	window *window
}

func (b *body) Work(_ context.Context, job *river.Job[bodyArgs]) error {
	now, due := time.Now().UnixMicro(), job.ScheduledAt.UnixMicro()
	if now >= b.window.fromUs {
		b.window.began.Add(1)
	}
	if due < b.window.fromUs || due >= b.window.untilUs {
		return nil
	}
	if at := b.window.counted.Add(1) - 1; at < int64(len(b.window.late)) {
		b.window.late[at] = now - due
	}
	return nil
}

// each is due once a second, at its own part of it.
type each struct{ offsetUs int64 }

func (e each) Next(after time.Time) time.Time {
	us := after.UnixMicro() - e.offsetUs
	return time.UnixMicro(us - us%1_000_000 + 1_000_000 + e.offsetUs).UTC()
}

var out = bufio.NewWriterSize(os.Stdout, 1<<20)

func say(line map[string]any) {
	bytes, err := json.Marshal(line)
	check(err)
	_, err = out.Write(append(bytes, '\n'))
	check(err)
	check(out.Flush())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	check(err)
	return n
}

func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version
			}
		}
	}
	return "?"
}

func main() {
	if len(os.Args) != 7 {
		check(fmt.Errorf("URL MODE RATE SECONDS FROM_MS WARM_SECONDS are needed"))
	}
	url, mode, rate, seconds := os.Args[1], os.Args[2], number(os.Args[3]), number(os.Args[4])
	from := time.UnixMilli(number(os.Args[5]))
	warm := number(os.Args[6])
	until := from.Add(time.Duration(seconds) * time.Second)
	ctx := context.Background()

	// The driver says when to go on; without it there is nothing to do.
	told := make(chan struct{}, 1)
	go func() {
		input := bufio.NewReader(os.Stdin)
		for {
			if _, err := input.ReadString('\n'); err == io.EOF {
				os.Exit(1)
			}
			told <- struct{}{}
		}
	}()

	say(map[string]any{
		"event":   "system",
		"version": fmt.Sprintf("%s, pgx %s, %s", version("github.com/riverqueue/river"), version("github.com/jackc/pgx/v5"), runtime.Version()),
		"settings": fmt.Sprintf("MaxWorkers %d, FetchCooldown %s, FetchPollInterval %s, InsertManyFast, %d connections, one process",
			maxWorkers, fetchCooldown, fetchPoll, connections),
	})
	config, err := pgxpool.ParseConfig(url)
	check(err)
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	check(err)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New[pgx.Tx](driver, nil)
	check(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	check(err)

	count := rate * seconds
	seen := &window{fromUs: from.UnixMicro(), untilUs: until.UnixMicro(), late: make([]int64, count)}
	workers := river.NewWorkers()
	river.AddWorker(workers, &body{window: seen})
	settings := &river.Config{
		FetchCooldown:     fetchCooldown,
		FetchPollInterval: fetchPoll,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: maxWorkers}},
		Workers:           workers,
	}
	begin := time.Now()
	stored := int64(0)
	switch mode {
	case "once":
	case "recurring":
		for n := range rate {
			settings.PeriodicJobs = append(settings.PeriodicJobs, river.NewPeriodicJob(
				each{offsetUs: n * 1_000_000 / rate},
				func() (river.JobArgs, *river.InsertOpts) { return bodyArgs{}, nil },
				nil,
			))
		}
	default:
		check(fmt.Errorf("no jobs of the kind %s", mode))
	}
	client, err := river.NewClient(driver, settings)
	check(err)
	if mode == "once" {
		// Those of the warm-up come first; they are not counted.
		jobs, firstDue := rate*(seconds+warm), from.Add(-time.Duration(warm)*time.Second)
		params := make([]river.InsertManyParams, 0, insertBatch)
		for n := range jobs {
			due := firstDue.Add(time.Duration(n*1000/rate) * time.Millisecond)
			params = append(params, river.InsertManyParams{Args: bodyArgs{}, InsertOpts: &river.InsertOpts{ScheduledAt: due}})
			if len(params) == insertBatch || n == jobs-1 {
				_, err = client.InsertManyFast(ctx, params)
				check(err)
				stored += int64(len(params))
				params = params[:0]
			}
		}
	}
	check(client.Start(ctx))
	say(map[string]any{"event": "inserted", "jobs": stored, "ms": time.Since(begin).Milliseconds()})

	end := until
	if mode == "once" {
		for seen.counted.Load() < count && time.Now().Before(until.Add(grace)) {
			time.Sleep(20 * time.Millisecond)
		}
		end = time.Now().Add(settle)
	}
	time.Sleep(time.Until(end))
	say(map[string]any{"event": "done", "ran": seen.began.Load()})
	<-told
	time.Sleep(time.Until(until.Add(grace)))
	counted := min(seen.counted.Load(), count)
	for first := int64(0); first < counted; first += lateBatch {
		say(map[string]any{"event": "late", "us": seen.late[first:min(first+lateBatch, counted)]})
	}
	say(map[string]any{"event": "end"})
}
