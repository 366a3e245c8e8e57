// Command ui measures how fast the pages are with a large study, as a reader sees
// it: a real server on SQLite, a study of 10,000 trials made through REST, and a
// real Chromium.
//
//	go run ./bench/ui                       # 10,000 trials, 7 runs of each
//	go run ./bench/ui -trials 1000 -runs 5
//	go run ./bench/ui -screens FOLDER       # and pictures of the pages
//
// Chromium is found as in the tests: CHROMIUM, or one of its names on the PATH.
// The browser, the server and the clients that report share the machine's cores.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/bench/program"
	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

type options struct {
	trials, runs, clients, load int
	method, screens             string
}

func main() {
	program.Run("bench/ui", func(ctx context.Context) error {
		o, err := parse(os.Args[1:])
		if err != nil {
			return err
		}
		return run(ctx, o)
	})
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("ui", flag.ContinueOnError)
	flags.IntVar(&o.trials, "trials", 10_000, "trials of the study")
	flags.IntVar(&o.runs, "runs", 7, "how often each thing is measured, at least 5")
	flags.IntVar(&o.clients, "clients", 16, "clients that make the study")
	flags.IntVar(&o.load, "load", 8, "clients that report without a pause while updates are measured under load")
	flags.StringVar(&o.method, "method", "random", "search method of the study: it hardly matters for the pages, and random makes the trials soonest")
	flags.StringVar(&o.screens, "screens", "", "folder to write pictures of the pages into; empty: none")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.trials < 300 || o.runs < 5 || o.clients < 1 || o.load < 1 {
		return o, errors.New("-trials must be at least 300, -runs at least 5, and -clients and -load at least 1")
	}
	return o, nil
}

func run(ctx context.Context, o options) (err error) {
	folder, err := os.MkdirTemp("", "tandem-ui-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary, err := launch.Build(ctx, folder)
	if err != nil {
		return err
	}
	server, err := launch.Serve(binary, filepath.Join(folder, "data"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client, err := rest.New(rest.Options{URL: server.URL, Token: server.Token})
	if err != nil {
		return err
	}
	began := time.Now()
	made, err := makeStudy(ctx, client, o)
	if err != nil {
		return fmt.Errorf("make the study: %w", err)
	}
	fmt.Printf("%d trials with %d results in %.0f s, by %d clients\n\n", o.trials, made.results, time.Since(began).Seconds(), o.clients)
	// The reader has a token of its own: the bounds of requests are for each token.
	reader, err := client.CreateToken(ctx, protocol.TokenRequest{Name: "bench-reader", Scope: "viewer"})
	if err != nil {
		return err
	}
	b := &browser{url: server.URL, token: reader.Token, path: "/studies/" + studyName, screens: o.screens}
	if err := b.start(ctx); err != nil {
		return err
	}
	defer b.stop()
	m := &measuring{options: o, browser: b, client: client, study: made.id}
	fmt.Println("| | median | lowest to highest | runs |\n|---|---|---|---|")
	return errors.Join(m.loads(), m.questions(), m.updates(ctx), m.underLoad(ctx), m.charts())
}

// spread prints a line of the table: milliseconds with the smallest and the
// largest, or bytes.
func spread(what string, values []float64, unit string) {
	slices.Sort(values)
	fmt.Printf("| %s | %.0f %s | %.0f to %.0f | %d |\n", what, values[len(values)/2], unit, values[0], values[len(values)-1], len(values))
}
