// Schedules on Temporal, each due every second. Called by `campanile-loadtest peers`; the lines it prints are described in ../README.md.
//
// Settings: the server's four services in this process, as `temporal server start-dev` runs them, but with PostgreSQL as its store (the plugin
// and the schemas that come with it) and four history shards; a worker in the same process. A schedule starts a workflow that does nothing:
// there is no cheaper body. Its instants are whole seconds, since a schedule knows no finer ones.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	_ "go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/temporal"
	"go.temporal.io/server/tools/sql"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	plugin        = "postgres12_pgx"
	host          = "127.0.0.1"
	historyShards = 4
	connections   = 30
	namespace     = "peers"
	queue         = "peers"
	lateBatch     = 10_000
	// Schedules that are created at once.
	creators = 16
	// Late bodies count until so long after the window.
	grace = time.Second
	// The namespace is known to all services within this time.
	known = time.Minute
)

// window counts the bodies whose instant falls into it.
type window struct {
	fromUs, untilUs int64
	late            []int64
	counted         atomic.Int64
	// Bodies that began since the window did, whenever they were due.
	began atomic.Int64
}

var seen *window

// body is the workflow. A schedule puts the instant behind the workflow's id.
func body(ctx workflow.Context) error {
	if workflow.IsReplaying(ctx) {
		return nil
	}
	now := time.Now().UnixMicro()
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	_, instant, _ := strings.Cut(id, "-")
	at, err := time.Parse(time.RFC3339, instant)
	if err != nil {
		return err
	}
	due := at.UnixMicro()
	if now >= seen.fromUs {
		seen.began.Add(1)
	}
	if due < seen.fromUs || due >= seen.untilUs {
		return nil
	}
	if n := seen.counted.Add(1) - 1; n < int64(len(seen.late)) {
		seen.late[n] = now - due
	}
	return nil
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

// makeTables makes both databases' tables as the server's own tool does. The second database is made anew beside the driver's.
func makeTables(at *url.URL, database, visibility string) {
	ctx := context.Background()
	connection, err := pgx.Connect(ctx, at.String())
	check(err)
	for _, statement := range []string{"drop database if exists %s with (force)", "create database %s"} {
		_, err = connection.Exec(ctx, fmt.Sprintf(statement, visibility))
		check(err)
	}
	check(connection.Close(ctx))
	for _, made := range [][2]string{{database, "temporal"}, {visibility, "visibility"}} {
		common := []string{"temporal-sql-tool", "--plugin", plugin, "--endpoint", at.Hostname(), "--port", at.Port(),
			"--user", at.Query().Get("user"), "--database", made[0]}
		check(sql.RunTool(append(common, "setup-schema", "--version", "0.0")))
		check(sql.RunTool(append(common, "update-schema", "--schema-name", "postgresql/v12/"+made[1])))
	}
}

// freePort gives each port once. The table of the services' addresses holds none above 32,767.
func freePort() int {
	for {
		nextPort++
		if listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, nextPort)); err == nil {
			check(listener.Close())
			return nextPort
		}
		if nextPort > 30_000 {
			check(fmt.Errorf("no port is free"))
		}
	}
}

var nextPort = 10_000 + os.Getpid()%10_000

func service(port int) config.Service {
	return config.Service{RPC: config.RPC{GRPCPort: port, MembershipPort: freePort(), BindOnLocalHost: true}}
}

func settings(at *url.URL, database, visibility string) *config.Config {
	frontend := freePort()
	store := func(name string) config.DataStore {
		return config.DataStore{SQL: &config.SQL{
			PluginName: plugin, User: at.Query().Get("user"), DatabaseName: name, ConnectAddr: at.Host, ConnectProtocol: "tcp",
			MaxConns: connections, MaxIdleConns: connections, MaxConnLifetime: time.Hour,
		}}
	}
	address := fmt.Sprintf("%s:%d", host, frontend)
	return &config.Config{
		Global: config.Global{Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: host}},
		Persistence: config.Persistence{
			DefaultStore: "default", VisibilityStore: "visibility", NumHistoryShards: historyShards,
			DataStores: map[string]config.DataStore{"default": store(database), "visibility": store(visibility)},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: "active", CurrentClusterName: "active",
			ClusterInformation: map[string]cluster.ClusterInformation{
				"active": {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			"frontend": service(frontend), "history": service(freePort()),
			"matching": service(freePort()), "worker": service(freePort()),
		},
		Archival: config.Archival{
			History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
		PublicClient: config.PublicClient{HostPort: address},
	}
}

// until asks again until it is done, since services come up one after the other.
func until(what string, try func() error) {
	deadline := time.Now().Add(known)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			check(fmt.Errorf("%s: %w", what, err))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func main() {
	if len(os.Args) != 7 {
		check(fmt.Errorf("URL MODE RATE SECONDS FROM_MS WARM_SECONDS are needed"))
	}
	at, err := url.Parse(os.Args[1])
	check(err)
	mode, rate, seconds := os.Args[2], number(os.Args[3]), number(os.Args[4])
	from := time.UnixMilli(number(os.Args[5]))
	warm := number(os.Args[6])
	end := from.Add(time.Duration(seconds) * time.Second)
	if mode != "recurring" {
		check(fmt.Errorf("no jobs of the kind %s", mode))
	}
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
		"version": fmt.Sprintf("%s, SDK %s, %s", version("go.temporal.io/server"), version("go.temporal.io/sdk"), runtime.Version()),
		"settings": fmt.Sprintf("all services and a worker in one process, %s, %d history shards, %d connections for each of two databases; "+
			"a schedule each second starts an empty workflow, at whole seconds", plugin, historyShards, connections),
	})
	database := strings.TrimPrefix(at.Path, "/")
	visibility := database + "_visibility"
	makeTables(at, database, visibility)
	cfg := settings(at, database, visibility)
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithLogger(log.NewZapLogger(log.BuildZapLogger(log.Config{Level: "error"}))),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
	)
	check(err)
	check(server.Start())

	logger := sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	options := client.Options{HostPort: cfg.PublicClient.HostPort, Namespace: namespace, Logger: logger}
	var spaces client.NamespaceClient
	until("a client of namespaces", func() error { spaces, err = client.NewNamespaceClient(options); return err })
	retention := &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}
	until("the namespace is made", func() error { return spaces.Register(ctx, retention) })
	var caller client.Client
	until("a client", func() error { caller, err = client.Dial(options); return err })

	count := rate * seconds
	seen = &window{fromUs: from.UnixMicro(), untilUs: end.UnixMicro(), late: make([]int64, count)}
	works := worker.New(caller, queue, worker.Options{})
	works.RegisterWorkflow(body)
	until("the worker starts", works.Start)

	begin := time.Now()
	create := func(n int64) error {
		_, err := caller.ScheduleClient().Create(ctx, client.ScheduleOptions{
			ID:      fmt.Sprintf("s%d", n),
			Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
			Spec: client.ScheduleSpec{
				Intervals: []client.ScheduleIntervalSpec{{Every: time.Second}},
				StartAt:   from.Add(-time.Duration(warm) * time.Second),
			},
			Action: &client.ScheduleWorkflowAction{ID: fmt.Sprintf("w%d", n), Workflow: body, TaskQueue: queue},
		})
		return err
	}
	// Services learn of a new namespace after a while.
	until("the first schedule is made", func() error { return create(0) })
	numbers := make(chan int64)
	var creating sync.WaitGroup
	for range creators {
		creating.Go(func() {
			for n := range numbers {
				check(create(n))
			}
		})
	}
	for n := int64(1); n < rate; n++ {
		numbers <- n
	}
	close(numbers)
	creating.Wait()
	say(map[string]any{"event": "inserted", "jobs": rate, "ms": time.Since(begin).Milliseconds()})

	time.Sleep(time.Until(end))
	say(map[string]any{"event": "done", "ran": seen.began.Load()})
	<-told
	time.Sleep(time.Until(end.Add(grace)))
	counted := min(seen.counted.Load(), count)
	for first := int64(0); first < counted; first += lateBatch {
		say(map[string]any{"event": "late", "us": seen.late[first:min(first+lateBatch, counted)]})
	}
	say(map[string]any{"event": "end"})
}
