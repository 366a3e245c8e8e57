package edgecmd

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/internal/format"
)

// backendFlags are the choices of "edge backend".
type backendFlags struct {
	model, runs, backends   string
	priorities, limits      []string
	dimensions              map[string]string
	accuracy                float64
	rate, batch, inferences float64
	pattern                 string
	explore                 string
	json                    bool
}

// maxRunsFile bounds a file of runs, in bytes.
const maxRunsFile = 256 << 20

func backendCommand() *cobra.Command {
	var flags backendFlags
	command := &cobra.Command{
		Use:   "backend",
		Short: "Choose a backend for a model and its requests",
		Long: `Choose a backend for a model and its requests.

From runs that were measured (one JSON object a line) a regressor learns what a
run takes on each backend: CPU, GPU and memory use, latency, energy. It predicts
that for the model and the requests in question, rules out what breaks a limit,
and chooses the best of the others by the priorities. All numbers are estimates,
with one standard deviation.

The backends are B1 to B4 of DOPE-ML (2 or 4 cores, with or without a GPU)
unless a file describes others. docs/edge.md has the formats.`,
		Example: `  tandem edge backend --model model.onnx --runs runs.jsonl
  tandem edge backend --model features.json --runs runs.jsonl --backends backends.yaml \
      --rate 20 --pattern event --priority latency=2,energy=1 --limit 'latency_ms<=50'
  tandem edge backend --model features.json --runs runs.jsonl --explore optimism --json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.run(command.InOrStdin(), command.OutOrStdout())
		},
	}
	f := command.Flags()
	f.StringVar(&flags.model, "model", "", "ONNX file, or JSON file with the features of the model; - is JSON from standard input")
	f.StringToStringVar(&flags.dimensions, "dimension", nil, "sizes of dimensions that an ONNX file leaves open, as `name=size`")
	f.Float64Var(&flags.accuracy, "accuracy", 0, "accuracy of a model that is given as ONNX, 0 to 1; 0 when not known")
	f.StringVar(&flags.runs, "runs", "", "JSON lines of runs to learn from, the oldest first; of each backend the last 1,000 count")
	f.StringVar(&flags.backends, "backends", "", "YAML or JSON file of backends (default: B1 to B4 of DOPE-ML)")
	f.StringSliceVar(&flags.priorities, "priority", []string{"latency=1"}, "weights of latency, accuracy, energy and cost: latency=2,energy=1")
	f.StringSliceVar(&flags.limits, "limit", nil, "what must hold: latency_ms<=50, energy<=0.5 (joules an inference), accuracy>=0.7, cost<=0.001 (an inference)")
	f.Float64Var(&flags.rate, "rate", 0, "inferences a second; 0 when not known")
	f.Float64Var(&flags.batch, "batch", 1, "inferences that are run together")
	f.Float64Var(&flags.inferences, "inferences", 0, "inferences in a burst; 0 when not known")
	f.StringVar(&flags.pattern, "pattern", string(backend.Periodic), "how requests come: periodic, event (independently) or bursty")
	f.StringVar(&flags.explore, "explore", string(backend.Greedy), "how to learn about other backends: none or optimism")
	f.BoolVar(&flags.json, "json", false, "print JSON for scripts")
	return command
}

func (f *backendFlags) run(stdin io.Reader, out io.Writer) error {
	if f.model == "" || (f.runs == "" && f.explore == string(backend.Greedy)) {
		return term.Misuse("give the model with --model (ONNX, or JSON with its features), and runs to learn from with --runs")
	}
	wishes, err := f.wishes()
	if err != nil {
		return term.Misuse("%w", err)
	}
	model, err := f.features(stdin)
	if err != nil {
		return err
	}
	profiles := backend.Defaults()
	if f.backends != "" {
		if profiles, err = parsed(f.backends, stdin, backend.ParseProfiles); err != nil {
			return err
		}
	}
	chooser, err := backend.New(profiles, backend.Settings{Exploration: backend.Exploration(f.explore)})
	if err != nil {
		return term.Misuse("%w", err)
	}
	if f.runs != "" {
		runs, err := parsed(f.runs, stdin, backend.ParseRuns)
		if err != nil {
			return err
		}
		if err := chooser.Learn(runs...); err != nil {
			return fmt.Errorf("%s: %w", f.runs, err)
		}
	}
	request := backend.Request{Rate: f.rate, Batch: f.batch, Inferences: f.inferences, Pattern: backend.Pattern(f.pattern)}
	choice, err := chooser.Choose(model, request, wishes)
	if err != nil {
		return err
	}
	if err := term.PrintAnswer(out, f.json, choice, printBackends); err != nil {
		return err
	}
	if choice.Chosen < 0 {
		return fmt.Errorf("no backend can be chosen: loosen a limit, or describe other backends with --backends")
	}
	return nil
}

// features reads the model: its graph from an ONNX file, or a JSON file.
func (f *backendFlags) features(stdin io.Reader) (backend.Model, error) {
	if strings.ToLower(filepath.Ext(f.model)) != ".onnx" {
		return parsed(f.model, stdin, backend.ParseModel)
	}
	if !(f.accuracy >= 0 && f.accuracy <= 1) {
		return backend.Model{}, term.Misuse("--accuracy %v: it is from 0 to 1", f.accuracy)
	}
	g, err := readModel(f.model, f.dimensions)
	if err != nil {
		return backend.Model{}, err
	}
	model := backend.FromGraph(g)
	model.Accuracy = f.accuracy
	return model, nil
}

// parsed reads a file and says its name with what is wrong in it.
func parsed[T any](path string, stdin io.Reader, parse func([]byte) (T, error)) (T, error) {
	var none T
	data, err := term.ReadBounded(path, stdin, maxRunsFile)
	if err != nil {
		return none, term.Misuse("%w", err)
	}
	what, err := parse(data)
	if err != nil {
		return none, term.Misuse("%s: %w", path, err)
	}
	return what, nil
}

// wishes reads --priority and --limit.
func (f *backendFlags) wishes() (backend.Wishes, error) {
	wishes := backend.Wishes{Weights: map[backend.Criterion]float64{}, Limits: map[backend.Criterion]float64{}}
	for _, text := range f.priorities {
		name, value, _ := strings.Cut(text, "=")
		weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		criterion := backend.Criterion(strings.TrimSpace(name))
		if err != nil || !slices.Contains(backend.Criteria(), criterion) {
			return wishes, fmt.Errorf("--priority %s: give CRITERION=WEIGHT; the criteria are %s", text, nameList(backend.Criteria()))
		}
		wishes.Weights[criterion] = weight
	}
	for _, text := range f.limits {
		criterion, limit, err := parseLimit(text)
		if err != nil {
			return wishes, err
		}
		wishes.Limits[criterion] = limit
	}
	return wishes, wishes.Check()
}

// parseLimit reads latency_ms<=50 and its like.
func parseLimit(text string) (backend.Criterion, float64, error) {
	sign := "<="
	if strings.Contains(text, ">=") {
		sign = ">="
	}
	name, value, _ := strings.Cut(text, sign)
	limit, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	name = strings.TrimSpace(name)
	if name == "latency_ms" {
		name, limit = string(backend.ByLatency), limit/1000
	}
	criterion := backend.Criterion(name)
	if err != nil || !slices.Contains(backend.Criteria(), criterion) {
		return "", 0, fmt.Errorf("--limit %s: give latency_ms<=50, latency<=0.05 (seconds), energy<=0.5, cost<=0.001 or accuracy>=0.7", text)
	}
	if (criterion == backend.ByAccuracy) != (sign == ">=") {
		return "", 0, fmt.Errorf("--limit %s: accuracy has a least value (>=), the others a greatest (<=)", text)
	}
	return criterion, limit, nil
}

func printBackends(out io.Writer, choice backend.Choice) error {
	var rows [][]string
	for _, option := range choice.Options {
		verdict := "chosen"
		switch {
		case len(option.RuledOut) > 0:
			verdict = "ruled out"
		case option.Backend != choice.Backend && option.Worse != nil:
			verdict = fmt.Sprintf("%+.0f%%", 100**option.Worse)
		case option.Backend != choice.Backend:
			verdict = ""
		case choice.Explored:
			verdict = "explored"
		}
		row := []string{format.Plain(option.Backend), strconv.Itoa(option.Runs)}
		for _, measure := range []backend.Measure{backend.CPUUtilization, backend.GPUUtilization, backend.MemoryBytes, backend.GPUMemoryBytes} {
			row = append(row, shownUse(option.Predicted, measure))
		}
		for _, criterion := range backend.Criteria() {
			band, known := option.Outcome[criterion]
			if !known {
				row = append(row, "-")
				continue
			}
			row = append(row, backend.Amount(criterion, band.Mean)+" ± "+backend.Amount(criterion, band.Deviation))
		}
		rows = append(rows, append(row, verdict))
	}
	fmt.Fprintln(out, "Estimates for each backend, ± one standard deviation; the last column is how much worse it is by the priorities")
	if err := term.Table(out, []string{"BACKEND", "RUNS", "CPU", "GPU", "MEMORY", "GPU MEMORY", "LATENCY", "ACCURACY", "ENERGY", "COST", ""}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", format.Plain(choice.Why))
	return err
}

// shownUse is a predicted use of a resource.
func shownUse(predicted map[string]backend.Band, measure backend.Measure) string {
	band, known := predicted[measure.String()]
	switch {
	case !known || math.IsNaN(band.Mean):
		return "-"
	case measure == backend.MemoryBytes || measure == backend.GPUMemoryBytes:
		return fmt.Sprintf("%.0f ± %.0f MiB", band.Mean/(1<<20), band.Deviation/(1<<20))
	}
	return fmt.Sprintf("%.0f ± %.0f%%", 100*band.Mean, 100*band.Deviation)
}

func nameList[T ~string](list []T) string {
	var names []string
	for _, one := range list {
		names = append(names, string(one))
	}
	return strings.Join(names, ", ")
}
