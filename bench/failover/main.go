// Command failover measures how long nothing is acknowledged when the server
// that owns a PostgreSQL database is lost and another one takes over.
//
//	go run ./bench/failover                     # 20 owners, killed
//	go run ./bench/failover -n 50 -how stop     # asked to end, which hand over
//	go run ./bench/failover -how freeze         # stopped where they stand (SIGSTOP)
//
// Two servers share a database of this machine's PostgreSQL, which listens on a
// socket. A client asks the one that stands by to store something, again and
// again (a study that is paused and resumed). The owner is lost; the time until
// the next acknowledged write is measured, a server is started in the place of
// the lost one, and the next round begins.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/bench/program"
	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// studyFile is a study that nobody works for.
const studyFile = `
name: failover
objective: {metric: loss, direction: minimize}
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: epochs, epochs: {min: 1, max: 1}}
stop: {trials: 1}
`

// longest is after how much time without an acknowledged write a round fails.
const longest = 2 * time.Minute

func main() {
	rounds := flag.Int("n", 20, "how many owners are lost")
	how := flag.String("how", "kill", "how they are lost: kill (SIGKILL), stop (SIGTERM) or freeze (SIGSTOP)")
	flag.Parse()
	program.Run("bench/failover", func(ctx context.Context) error { return measure(ctx, *rounds, *how) })
}

func measure(ctx context.Context, rounds int, how string) (err error) {
	lose, known := map[string]func(*launch.Server) error{
		"kill":   func(server *launch.Server) error { server.Kill(); return nil },
		"stop":   func(server *launch.Server) error { return syscall.Kill(server.PID(), syscall.SIGTERM) },
		"freeze": func(server *launch.Server) error { return syscall.Kill(server.PID(), syscall.SIGSTOP) },
	}[how]
	if !known {
		return fmt.Errorf("-how is kill, stop or freeze, not %q", how)
	}
	s := &site{}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	var all []float64
	for range rounds {
		seconds, err := s.round(ctx, lose)
		if err != nil {
			return err
		}
		line, err := json.Marshal(map[string]any{"how": how, "seconds": seconds})
		if err != nil {
			return err
		}
		fmt.Println(string(line))
		all = append(all, seconds)
	}
	slices.Sort(all)
	fmt.Printf("\n%d owners, %s: %.2f s in the median until the next acknowledged write (%.2f to %.2f)\n",
		len(all), how, all[len(all)/2], all[0], all[len(all)-1])
	return nil
}

// site is two servers on one database.
type site struct {
	folder, binary, address, token string
	database                       *launch.Database
	owner, next                    *launch.Server
	started                        int
}

func (s *site) open(ctx context.Context) (err error) {
	if s.folder, err = os.MkdirTemp("", "tandem-failover-"); err != nil {
		return err
	}
	if s.binary, err = launch.Build(ctx, s.folder); err != nil {
		return err
	}
	if s.database, err = launch.NewDatabase(ctx); err != nil {
		return err
	}
	if s.address, err = s.database.Create(ctx, "tandem"); err != nil {
		return err
	}
	if s.owner, err = s.serve(); err != nil {
		return err
	}
	s.token = s.owner.Token
	if s.next, err = s.serve(); err != nil {
		return err
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	_, err = client.CreateStudy(ctx, []byte(studyFile), "application/yaml")
	return err
}

func (s *site) serve() (*launch.Server, error) {
	s.started++
	return launch.Serve(s.binary, filepath.Join(s.folder, fmt.Sprint(s.started)), "--database", s.address)
}

// client talks to the server that stands by; it tries nothing twice by itself.
func (s *site) client() (*rest.Client, error) {
	return rest.New(rest.Options{URL: s.next.URL, Token: s.token, Patience: -1})
}

// write stores something.
func (s *site) write(ctx context.Context, client *rest.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	view, err := client.Study(ctx, "failover") // an attempt before may have been stored without saying so
	if err != nil {
		return err
	}
	if view.Status == protocol.StudyPaused {
		_, err = client.ResumeStudy(ctx, "failover")
	} else {
		_, err = client.PauseStudy(ctx, "failover")
	}
	return err
}

// round loses the owner and waits for the next one.
func (s *site) round(ctx context.Context, lose func(*launch.Server) error) (float64, error) {
	client, err := s.client()
	if err != nil {
		return 0, err
	}
	for range 10 {
		if err := s.write(ctx, client); err != nil {
			return 0, fmt.Errorf("a write while all is well: %w", err)
		}
	}
	if err := lose(s.owner); err != nil {
		return 0, err
	}
	lost := time.Now()
	for err := s.write(ctx, client); err != nil; err = s.write(ctx, client) {
		if time.Since(lost) > longest || ctx.Err() != nil {
			return 0, fmt.Errorf("nothing was acknowledged for %v: %w", time.Since(lost), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	took := time.Since(lost).Seconds()
	s.owner.Kill() // what is left of it
	s.owner = s.next
	s.next, err = s.serve()
	return took, err
}

func (s *site) close() error {
	for _, server := range []*launch.Server{s.owner, s.next} {
		if server != nil {
			server.Kill()
		}
	}
	var err error
	if s.database != nil {
		err = s.database.Remove()
	}
	if s.folder != "" {
		err = errors.Join(err, os.RemoveAll(s.folder))
	}
	return err
}
