package tandem

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// ErrNotInTrial says that no worker started this process.
var ErrNotInTrial = errors.New("tandem: no worker started this process (TANDEM_SOCKET is not set): run it through a study's command, or use Alone to try it by hand")

// FromEnvironment is the trial that a worker started this process for. Without a worker
// the error is ErrNotInTrial.
//
// Train trial.Epochs(), report each, keep checkpoints, and end with code 0: that ends
// the run. Another code is a failure.
func FromEnvironment(ctx context.Context) (*Trial, error) {
	socket := os.Getenv("TANDEM_SOCKET")
	if socket == "" {
		return nil, ErrNotInTrial
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", socket)
	}
	worker := &worker{to: &transport{base: "http://worker", http: &http.Client{Transport: &http.Transport{DialContext: dial}}, patience: defaultPatience}}
	var given struct {
		lease
		Directory string `json:"checkpoint_dir"`
	}
	if err := worker.to.send(ctx, call{doing: "ask the worker for the trial", path: "/v1/trial"}, &given); err != nil {
		return nil, err
	}
	ctx, worker.cancel = context.WithCancelCause(ctx)
	trial := newTrial(ctx, given.lease, worker)
	trial.directory = given.Directory
	return trial, nil
}

// away is how long the worker may take to answer what its server must know: the server may be away.
const away = 365 * 24 * time.Hour

// worker is the socket of the worker that started this process. It measures seconds
// and joules itself.
type worker struct {
	to     *transport
	cancel context.CancelCauseFunc
}

func (w *worker) report(ctx context.Context, epoch int, metrics map[string]number, _ time.Duration) (directive, error) {
	var answer directive
	err := w.post(ctx, call{doing: fmt.Sprintf("report epoch %d", epoch), path: "/v1/report", document: map[string]any{"epoch": epoch, "metrics": metrics}, wait: away}, &answer)
	return answer, err
}

func (w *worker) publish(ctx context.Context, epoch int) error {
	// The worker answers when it has a copy or, if no other epoch follows, when the upload
	// is committed.
	return w.post(ctx, call{doing: fmt.Sprintf("keep checkpoint %d", epoch), path: "/v1/checkpoint?wait=false", document: map[string]any{"epoch": epoch}, wait: away}, nil)
}

func (w *worker) directive(ctx context.Context) (directive, error) {
	var answer directive
	err := w.to.send(ctx, call{doing: "ask whether to go on", path: "/v1/directive"}, &answer)
	return answer, err
}

func (w *worker) post(ctx context.Context, one call, into any) error {
	one.method = http.MethodPost
	err := w.to.send(ctx, one, into)
	if IsCode(err, LeaseLost) {
		w.cancel(err)
	}
	return err
}

// Alone is a trial without a server, to try a program by hand: reports are printed, and
// checkpoints are written to a folder that the program removes with the returned end.
func Alone(params map[string]any, epochs int) (trial *Trial, end func(), err error) {
	folder, err := os.MkdirTemp("", "tandem-")
	if err != nil {
		return nil, nil, fmt.Errorf("tandem: make a folder for checkpoints: %w", err)
	}
	trial = newTrial(context.Background(), lease{TrialID: "alone-0", Study: "alone", Budget: budget{Epochs: max(epochs, 1), DataFraction: 1}, Params: params}, alone{})
	trial.directory = folder + "/checkpoint"
	if err := os.Mkdir(trial.directory, 0o700); err != nil {
		return nil, nil, fmt.Errorf("tandem: make a folder for checkpoints: %w", err)
	}
	return trial, func() { _ = os.RemoveAll(folder) }, nil //nolint:errcheck // a temporary folder
}

// alone has no server: the budget is all that ends the run.
type alone struct{}

func (alone) report(_ context.Context, epoch int, metrics map[string]number, _ time.Duration) (directive, error) {
	fmt.Printf("epoch %d: %v\n", epoch, metrics)
	return directive{Action: goOn}, nil
}

func (alone) publish(context.Context, int) error { return nil }

func (alone) directive(context.Context) (directive, error) { return directive{Action: goOn}, nil }
