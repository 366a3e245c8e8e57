package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/protocol"
)

const (
	// watchEvery is how often progress is asked for, and shown on a terminal.
	watchEvery = time.Second
	// linesEvery is how often a line is printed where there is no terminal and
	// nothing new happened.
	linesEvery = 15 * time.Second
)

// watch shows a study's progress until it is over, and returns its last view.
func watch(ctx context.Context, client *rest.Client, study string, out io.Writer) (protocol.StudyView, error) {
	display := newDisplay(out)
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		view, err := client.Study(ctx, study)
		if err != nil {
			display.end()
			return view, err
		}
		display.show(view)
		if view.Status.Over() {
			display.end()
			return view, nil
		}
		select {
		case <-ctx.Done():
			display.end()
			return view, ctx.Err()
		case <-ticker.C:
		}
	}
}

// display prints progress: one line that changes on a terminal, a line for
// each news elsewhere.
type display struct {
	out      io.Writer
	terminal int // file descriptor, or -1
	shown    bool
	news     string
	printed  time.Time
}

func newDisplay(out io.Writer) *display {
	d := &display{out: out, terminal: -1}
	if file, ok := out.(*os.File); ok && isTerminal(file) {
		d.terminal = int(file.Fd())
	}
	return d
}

func isTerminal(file *os.File) bool {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

func (d *display) show(view protocol.StudyView) {
	line := progressLine(view)
	if d.terminal >= 0 {
		fmt.Fprintf(d.out, "\r\x1b[K%s", fitted(line, d.width()))
		d.shown = true
		return
	}
	news := fmt.Sprint(view.Status, shownBest(view.Progress.Best))
	if news == d.news && time.Since(d.printed) < linesEvery {
		return
	}
	d.news, d.printed = news, time.Now()
	fmt.Fprintln(d.out, line)
}

// end leaves the last line standing.
func (d *display) end() {
	if d.shown {
		fmt.Fprintln(d.out)
		d.shown = false
	}
}

func (d *display) width() int {
	size, err := unix.IoctlGetWinsize(d.terminal, unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 80
	}
	return int(size.Col)
}

func fitted(line string, width int) string {
	runes := []rune(line)
	if len(runes) < width {
		return line
	}
	return string(runes[:max(width-2, 0)]) + "…"
}

// progressLine is a study's state in one line, the most important first.
func progressLine(view protocol.StudyView) string {
	p := view.Progress
	parts := []string{fmt.Sprintf("%s  %s", shownSeconds(p.ElapsedSeconds), shownBest(p.Best))}
	if view.Status != protocol.StudyRunning {
		parts[0] = string(view.Status) + "  " + parts[0]
	}
	trials := shownStates(p.Trials)
	if p.MaxTrials > 0 {
		trials += fmt.Sprintf(" (%d of %d started)", p.Created, p.MaxTrials)
	}
	parts = append(parts, trials, fmt.Sprintf("%s, %.1f data passes", count(p.Epochs, "epoch"), p.DataPasses))
	if p.Energy.Method != "" {
		parts = append(parts, shownEnergy(p.Energy))
	}
	if p.RemainingSeconds != nil {
		parts = append(parts, "about "+shownSeconds(*p.RemainingSeconds)+" left")
	}
	return strings.Join(parts, " | ")
}
