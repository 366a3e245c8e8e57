package studycmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// savedDeployment says where to save what a device needs to run a trial's model.
type savedDeployment struct{ folder, device string }

// write makes the folder.
func (s savedDeployment) write(ctx context.Context, client *rest.Client, of trialName, answer protocol.Deployments, out io.Writer) error {
	chosen, err := s.choose(answer.Devices)
	if err != nil {
		return err
	}
	detail, err := client.Trial(ctx, of.study, of.number)
	if err != nil {
		return err
	}
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		return fmt.Errorf("--output: name a new folder: %w", err)
	}
	logged := slices.IndexFunc(detail.Trial.Logged, func(one trial.Artifact) bool { return one.Name == trial.ModelIn(chosen.Configuration.Precision) })
	if logged >= 0 {
		if err := download(ctx, client, of, detail.Trial.Logged[logged], filepath.Join(s.folder, trial.Model)); err != nil {
			return err
		}
	}
	texts := map[string]string{"infer.py": chosen.Code, "README.md": readme(of, detail, chosen, logged >= 0)}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := files.Write(filepath.Join(s.folder, name), strings.NewReader(texts[name]), 0o600); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s has infer.py and README.md for %s", s.folder, format.Plain(chosen.Device))
	if logged < 0 {
		_, err = fmt.Fprint(out, ".\nThe script logged no trained model: call trial.log_model(model, sample_input) after the last epoch, or export one to model.onnx there.\n")
		return err
	}
	_, err = fmt.Fprintf(out, ", and model.onnx (%s, after epoch %d).\n", format.Size(detail.Trial.Logged[logged].Bytes), detail.Trial.Logged[logged].Epoch)
	return err
}

// choose is the answer for the device, or the first one that runs the model.
func (s savedDeployment) choose(devices []deployment.Deployment) (deployment.Deployment, error) {
	var names []string
	for _, one := range devices {
		if one.Runs() && (s.device == "" || one.Device == s.device) {
			return one, nil
		}
		if one.Runs() {
			names = append(names, one.Device)
		}
	}
	if len(names) > 0 {
		return deployment.Deployment{}, term.Misuse("--device %s: the study has no answer for it; there is one for %s", s.device, strings.Join(names, ", "))
	}
	return deployment.Deployment{}, fmt.Errorf("the model runs on none of the study's devices: 'tandem study deployments' says why")
}

// readme says what the folder is, and how far its numbers can be trusted.
func readme(of trialName, detail protocol.TrialDetail, chosen deployment.Deployment, model bool) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# %s (%s): trial %d of study %s\n\n", format.Plain(chosen.Device), format.Plain(chosen.Title), of.number, format.Plain(of.study))
	if count := len(detail.Reports); count > 0 {
		last := detail.Reports[count-1]
		fmt.Fprintf(&text, "After epoch %d:", last.Epoch)
		for _, name := range slices.Sorted(maps.Keys(last.Metrics)) {
			fmt.Fprintf(&text, " %s %.6g;", format.Plain(name), float64(last.Metrics[name]))
		}
		fmt.Fprint(&text, " trained with")
		for _, name := range slices.Sorted(maps.Keys(detail.Trial.Configuration)) {
			fmt.Fprintf(&text, " %s=%s", format.Plain(name), format.Plain(detail.Trial.Configuration[name].String()))
		}
		fmt.Fprint(&text, ".\n\n")
	}
	fmt.Fprint(&text, "```\n")
	show.PrintDeployments(&text, []deployment.Deployment{chosen}) //nolint:errcheck // into memory
	fmt.Fprint(&text, "```\n\n")
	if !model {
		fmt.Fprint(&text, "The script logged no trained model: export one to `model.onnx`.\n\n")
	}
	fmt.Fprintf(&text, "    pip install %s numpy\n", chosen.Package())
	fmt.Fprint(&text, "    python3 infer.py model.onnx      # what a batch takes here\n\n`from infer import infer` runs the model on arrays of samples, batch by batch.\n")
	if load := chosen.Batching; load != nil && load.RatePerSecond > 0 {
		fmt.Fprint(&text, "\n    python3 infer.py model.onnx --load 10      # the load, and its 99th percentile here\n    python3 infer.py model.onnx --serve 8000   # answers POSTs of a sample on 127.0.0.1\n\n`from infer import submit` puts samples together within a program.\n")
	}
	return text.String()
}
