package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tandem-tune/tandem/workers/sandbox"
)

// The test binary is also the training script: started with the variable
// ROLE it plays that part instead of running tests.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], sandbox.Subcommand()) {
		os.Exit(sandbox.Process())
	}
	if role, ok := roles()[os.Getenv("ROLE")]; ok {
		os.Exit(role())
	}
	goleak.VerifyTestMain(m)
}

func roles() map[string]func() int {
	return map[string]func() int{
		"train": train, "lines": lines, "spawn": spawn, "deaf": deaf, "polite": polite, "fail": fail, "crash": crash,
		"sleep": forever, "flood": flood, "quiet": quiet, "faulty": faulty, "show": show, "wait": reportAndWait,
		"short": short, "agent": killableAgent, "victim": victim, "careless": careless, "gated": gated, "parent": parent, "stale": stale,
		"begins": begins, "serial": serial, "configured": configured, "saves": saves, "saves-and-leaves": savesAndLeaves, "quantizes": quantizes, "pinned": pinned,
		"pry": pry, "waits": waits, "exposed": exposed, "brood": brood, "tell": tell, "logs": logs, "hasty": hasty,
	}
}

// as is the environment that gives the script a part and somewhere to write.
func as(role string, place string) map[string]string {
	// A binary with the race detector would linger for a second at its end.
	return map[string]string{"ROLE": role, "PLACE": place, "GORACE": "atexit_sleep_ms=0"}
}

func script(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self}
}

// note appends a line to a file of the script's place.
func note(file, format string, args ...any) {
	out, err := os.OpenFile(filepath.Join(os.Getenv("PLACE"), file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer out.Close()
	fmt.Fprintf(out, format+"\n", args...)
}

// call asks the worker's socket.
func call(method, path, body string) (status int, answer map[string]any) {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", os.Getenv("TANDEM_SOCKET"))
	}}}
	request, err := http.NewRequest(method, "http://worker"+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	response, err := client.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		panic(err)
	}
	return response.StatusCode, answer
}

func number(name string) int {
	value, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		panic(err)
	}
	return value
}

func state() string { return filepath.Join(os.Getenv("TANDEM_CHECKPOINT_DIR"), "state") }

// train is a script with a client: it continues from its checkpoint and keeps
// one after each epoch.
func train() int {
	_, trial := call("GET", "/v1/trial", "")
	first, last := int(trial["first_epoch"].(float64)), int(trial["budget"].(map[string]any)["epochs"].(float64))
	sum := 0
	if first > 1 {
		content, err := os.ReadFile(state())
		if err != nil {
			panic(err)
		}
		sum, _ = strconv.Atoi(string(content))
	}
	for epoch := first; epoch <= last; epoch++ {
		note("trained", "%d", epoch)
		sum += epoch
		status, directive := call("POST", "/v1/report", fmt.Sprintf(`{"epoch": %d, "metrics": {"accuracy": 0.%d, "sum": %d}}`, epoch, epoch, sum))
		if status != http.StatusOK {
			fmt.Fprintln(os.Stderr, directive)
			return 1
		}
		if err := os.WriteFile(state(), []byte(strconv.Itoa(sum)), 0o644); err != nil {
			panic(err)
		}
		if status, answer := call("POST", "/v1/checkpoint", fmt.Sprintf(`{"epoch": %d}`, epoch)); status != http.StatusOK {
			fmt.Fprintln(os.Stderr, answer)
			return 1
		}
		if directive["action"] != "continue" {
			note("told", "%s", directive["action"])
			return 0
		}
	}
	return 0
}

// lines is a script without a client, which leaves one checkpoint at its end.
func lines() int {
	for epoch := number("TANDEM_FIRST_EPOCH"); epoch <= number("TANDEM_EPOCHS"); epoch++ {
		note("trained", "%d", epoch)
		fmt.Printf("epoch %d is running\n{\"epoch\": %d, \"accuracy\": 0.5, \"loss\": NaN, \"note\": \"NaN\"}\n", epoch, epoch)
	}
	if err := os.WriteFile(state(), []byte(os.Getenv("TANDEM_EPOCHS")), 0o644); err != nil {
		panic(err)
	}
	return 0
}

// stale keeps its state in its first run only.
func stale() int {
	if number("TANDEM_FIRST_EPOCH") == 1 {
		return lines()
	}
	for epoch := number("TANDEM_FIRST_EPOCH"); epoch <= number("TANDEM_EPOCHS"); epoch++ {
		fmt.Printf("{\"epoch\": %d, \"accuracy\": 0.5}\n", epoch)
	}
	return 0
}

// spawn has a child in its group and one that left it, and waits.
func spawn() int {
	startOthers()
	note("pids", "%d", os.Getpid())
	return reportAndWait()
}

// parent ends well and leaves its children behind.
func parent() int {
	startOthers()
	fmt.Println(`{"epoch": 1, "accuracy": 1}`)
	return 0
}

func startOthers() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	for _, leaves := range []bool{false, true} {
		child := exec.Command(self)
		child.Env = append(os.Environ(), "ROLE=sleep")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: leaves}
		if err := child.Start(); err != nil {
			panic(err)
		}
		note("pids", "%d", child.Process.Pid)
	}
	if os.Getenv("HIDDEN") != "" {
		child := exec.Command(self) // in no group, and without the mark of the run
		child.Env = []string{"ROLE=sleep"}
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			panic(err)
		}
		note("pids", "%d", child.Process.Pid)
	}
}

func reportAndWait() int {
	call("POST", "/v1/report", `{"epoch": 1, "metrics": {"accuracy": 0.1}}`)
	note("ready", "reported")
	return forever()
}

// gated makes its second report when it is let.
func gated() int {
	note("pids", "%d", os.Getpid())
	call("POST", "/v1/report", `{"epoch": 1, "metrics": {"accuracy": 0.1}}`)
	for {
		if _, err := os.Stat(filepath.Join(os.Getenv("PLACE"), "go")); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	call("POST", "/v1/report", `{"epoch": 2, "metrics": {"accuracy": 0.1}}`)
	note("ready", "reported")
	return forever()
}

func forever() int {
	select {
	case <-make(chan os.Signal):
	case <-context.Background().Done():
	case <-signals(): // keeps the runtime from calling it a deadlock
	}
	return 0
}

func signals() <-chan os.Signal {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGUSR1)
	return received
}

func deaf() int {
	signal.Ignore(syscall.SIGTERM)
	return reportAndWait()
}

// polite ends well when asked to, with a checkpoint.
func polite() int {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println(`{"epoch": 1, "accuracy": 0.1}`)
	<-asked
	if err := os.WriteFile(state(), []byte("1"), 0o644); err != nil {
		panic(err)
	}
	return 0
}

// careless reports and checkpoints, and ends when asked to with the folder as it was.
func careless() int {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	if err := os.WriteFile(state(), []byte("1"), 0o644); err != nil {
		panic(err)
	}
	fmt.Println(`{"epoch": 1, "accuracy": 0.1, "checkpoint": true}`)
	fmt.Println(`{"epoch": 2, "accuracy": 0.2}`)
	<-asked
	return 0
}

func fail() int {
	fmt.Fprintln(os.Stderr, "Traceback (most recent call last):")
	fmt.Fprintln(os.Stderr, "ValueError: the learning rate is a fruit")
	return 3
}

func crash() int {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	return forever()
}

func short() int {
	fmt.Println(`{"epoch": 1, "accuracy": 0.1}`)
	return 0
}

// flood writes more than is kept: a gigantic line, bytes that are no text, and
// a report at the end.
func flood() int {
	if _, err := os.Stdout.Write(append(bytes.Repeat([]byte("x"), 3<<20), '\n')); err != nil {
		return 1
	}
	for i := range 40_000 {
		fmt.Printf("line %d \xff\x00 of a long log é\n", i)
	}
	fmt.Println(`{"epoch": 1, "accuracy": 1e999}`)
	fmt.Fprintln(os.Stderr, "the last line")
	return 0
}

func quiet() int {
	fmt.Println(`{"epoch": 1, "accuracy": 0.1}`)
	return forever()
}

// faulty makes every wrong call and notes what it is told.
func faulty() int {
	for _, c := range [][3]string{
		{"POST", "/v1/report", `{"epoch": 9, "metrics": {"accuracy": 1}}`},
		{"POST", "/v1/report", `{"epoch": 0, "metrics": {"accuracy": 1}}`},
		{"POST", "/v1/report", `{"epoch": 1, "metrics": {}}`},
		{"POST", "/v1/report", `{"epoch": 1, "metric": {"accuracy": 1}}`},
		{"POST", "/v1/report", `{"epoch": 1, "metrics": {"accuracy": 1}, "system": {"": 1, "precision": null, "word": "` + strings.Repeat("a", 1025) + `"}}`},
		{"POST", "/v1/report", `{"epoch": 1`},
		{"POST", "/v1/report", `{"epoch": 1, "metrics": {"a": 1}} {}`},
		{"POST", "/v1/report", `{"epoch": 1, "metrics": {"` + strings.Repeat("a", 2<<20) + `": 1}}`},
		{"POST", "/v1/checkpoint", `{"epoch": 1}`},
		{"GET", "/v1/nothing", ``},
		{"POST", "/v1/report", `{"epoch": 1, "metrics": {"accuracy": "NaN", "loss": "-Infinity"}}`},
		{"POST", "/v1/report", `{"epoch": 1, "metrics": {"accuracy": 7}}`}, // again: the same answer
		{"POST", "/v1/checkpoint", `{"epoch": 1}`},                         // nothing is in the folder
		{"POST", "/v1/report", `{"epoch": 2, "metrics": {"loss": 1}}`},     // the server refuses it
		{"POST", "/v1/report", `{"epoch": 2, "metrics": {"accuracy": 1}}`},
		{"POST", "/v1/report", `{"epoch": 1, "metrics": {"accuracy": 1}}`}, // out of order
		{"GET", "/v1/directive", ``},
	} {
		status, answer := call(c[0], c[1], c[2])
		said, _ := json.Marshal(answer)
		note("said", "%d %s", status, said)
	}
	return 0
}

func show() int {
	environment := os.Environ()
	slices.Sort(environment)
	for _, variable := range environment {
		note("environment", "%s", variable)
	}
	directory, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	note("environment", "cwd=%s", directory)
	mask := syscall.Umask(0)
	note("environment", "umask=%o", mask)
	if content, err := io.ReadAll(os.Stdin); err == nil {
		note("environment", "stdin=%d bytes", len(content))
	}
	fmt.Println(`{"epoch": 1, "accuracy": 1}`)
	return 0
}
