package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// site is a server of Tandem with one worker, on a folder of its own.
type site struct {
	folder string
	server *launch.Server
	worker *launch.Process
	client *rest.Client
}

// openSite starts a new server, gives it the ground truths, and starts a worker
// with so many slots. It returns when the worker is known to the server.
func openSite(ctx context.Context, o options, slots string, truths []string) (s *site, err error) {
	s = &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.folder, err = os.MkdirTemp("", "tandem-pipetune-"); err != nil {
		return s, err
	}
	binary := o.binary()
	if s.server, err = launch.Serve(binary, filepath.Join(s.folder, "data")); err != nil {
		return s, err
	}
	if s.client, err = rest.New(rest.Options{URL: s.server.URL, Token: s.server.Token}); err != nil {
		return s, err
	}
	if err := s.know(ctx, truths); err != nil {
		return s, err
	}
	if slots == "cores" {
		slots = strconv.Itoa(cores())
	}
	s.worker, err = launch.Start(binary, s.access(), "worker", "--probe", "never", "--slots", slots, "--directory", o.scripts, "--scratch", filepath.Join(s.folder, "scratch"),
		"--sandbox", "off") // scripts and data lie wherever the flags say
	if err != nil {
		return s, err
	}
	return s, s.staffed(ctx)
}

// access are the variables with which a command reaches the server.
func (s *site) access() []string {
	return []string{"TANDEM_SERVER=" + s.server.URL, "TANDEM_TOKEN=" + s.server.Token}
}

// staffed waits for the worker.
func (s *site) staffed(ctx context.Context) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		workers, err := s.client.Workers(ctx)
		if err != nil || len(workers) > 0 {
			return err
		}
	}
	return fmt.Errorf("the worker did not register:\n%s", s.worker.Output())
}

// finished waits until a study is over.
func (s *site) finished(ctx context.Context, study string, patience time.Duration) (protocol.StudyView, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		view, err := s.client.Study(ctx, study)
		switch {
		case err != nil:
			return view, err
		case view.Finished != nil && view.Progress.Created == 0:
			return view, fmt.Errorf("study %s is %s without a trial: %s", study, view.Status, view.Reason)
		case view.Finished != nil:
			return view, nil
		case time.Now().After(deadline):
			return view, fmt.Errorf("study %s was still %s after %v; the worker said:\n%s", study, view.Status, patience, s.worker.Output())
		}
	}
}

// close ends both, the worker first, and removes the folder.
func (s *site) close() (err error) {
	if s.worker != nil {
		err = s.worker.Stop()
	}
	if s.server != nil {
		err = errors.Join(err, s.server.Stop())
	}
	if s.folder != "" {
		err = errors.Join(err, os.RemoveAll(s.folder))
	}
	return err
}
