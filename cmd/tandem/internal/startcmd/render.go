package startcmd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// yaml is a value as a study file has it.
func yaml(value any) string {
	if number, ok := value.(float64); ok {
		return exact(number)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// nothing says why there is nothing to tune, and what to do.
func (s suggestion) nothing(path string) string {
	if len(s.left) > 0 {
		return fmt.Sprintf("%s has options, but none with a name of a hyperparameter: %s. Rename them (learning_rate, batch_size, dropout, ...), or write the study file by hand (docs/study-file.md)", path, strings.Join(s.left, ", "))
	}
	return path + ` has no option to tune. Give the script one for each hyperparameter, such as parser.add_argument("--learning-rate", type=float, default=1e-3), or name a configuration in YAML or JSON`
}

// text is the study file.
func (s suggestion) text(name, command string) string {
	direction := "maximize"
	if s.minimize {
		direction = "minimize"
	}
	var out strings.Builder
	fmt.Fprintf(&out, `# Written by "tandem init". Ranges are guesses around the defaults: look at each.
# Every field: docs/reference/study-file.md. What it will do: tandem study plan FILE
name: %s
command: %s

# What the script reports after each epoch, and whether more of it is better.
objective: {metric: %s, direction: %s}

space:
%s
`, yaml(name), command, s.metric, direction, strings.Join(s.space, "\n"))
	if len(s.comments) > 0 {
		fmt.Fprintf(&out, "  # Not tuned, as their names do not say what they are:\n%s\n", strings.Join(s.comments, "\n"))
	}
	fmt.Fprintf(&out, `
# Every trial trains the least; better ones go on, up to the most.
budget:
  policy: epochs
  epochs: {min: %d, max: %d}

search: {method: bohb}
stop: {trials: 50, seconds: 3600}

# Where the model will run, and how fast it has to be there (docs/edge.md). The script then
# calls trial.save_model(model, sample_input) before it trains.
# inference: {devices: [this-machine]} # or raspberry-pi-4, ...: tandem edge devices
# constraints: {metric: edge.latency_ms, max: 50}
`, max(1, s.most/9), s.most)
	return out.String()
}

// wrapped are the study file's lines about the command that tunes the script as it is; empty
// where the script knows of Tandem, or takes no values on its command line.
func (s seen) wrapped(made suggestion, command string) string {
	var arguments string
	var left []string
	for _, one := range s.Options {
		switch value := one.Name; {
		case one.Flag == "" && slices.Contains(made.tuned, value):
			left = append(left, value)
		case one.Name == made.epochs:
			value = "epochs"
			fallthrough
		case slices.Contains(made.tuned, value):
			arguments += fmt.Sprintf(", %q", one.Flag+"={"+value+"}")
		}
	}
	if len(left) == len(made.tuned) || slices.Contains(s.Libraries, "tandem") || s.configuration {
		return ""
	}
	pattern := `(?i)\bepoch\W*(?P<epoch>\d+)|\b` + made.metric + `\W+?`
	if s.library() == "XGBoost" {
		pattern = `\[(?P<epoch>\d+)\].*` + made.metric + `:`
	}
	pattern += `(?P<` + made.metric + `>[-+.]*\d[-+.\w]*|nan)`
	text := "\n# Or leave the script as it is: this reads its output by a pattern, a guess (docs/training-scripts.md).\n# command: [python3, -m, tandem.wrap, '" +
		pattern + "', " + strings.TrimPrefix(strings.TrimSuffix(command, "]"), "[") + arguments + "]"
	if len(left) > 0 {
		text += "\n# It passes no switches: take out of the space, or give a value: " + strings.Join(left, ", ")
	}
	return text
}

// lines are what the script needs to be tuned.
func (s seen) lines(made suggestion) string {
	epochs := fmt.Sprint(made.most)
	if made.epochs != "" && !s.Clicked && !s.configuration {
		epochs = "args." + made.epochs
	}
	start := fmt.Sprintf("import tandem\n\ntrial = tandem.current_trial(params=vars(args), epochs=%s)\nvars(args).update(trial.params)         # after parse_args()\n", epochs)
	switch {
	case s.configuration:
		start = fmt.Sprintf(`import functools

import tandem

trial = tandem.current_trial(params={}, epochs=%s)
for name, value in trial.params.items():  # after the configuration was read
    *path, last = name.split(".")
    functools.reduce(dict.__getitem__, path, config)[last] = value
`, epochs)
	case s.Clicked:
		start = fmt.Sprintf("import tandem\n\ntrial = tandem.current_trial(params=dict(%s), epochs=%s)\n", arguments(made.tuned), epochs)
		start += fmt.Sprintf("%s = (trial.params[name] for name in %s)\n", strings.Join(made.tuned, ", ")+trailing(made.tuned), yaml(made.tuned))
	}
	return start + s.loop(made)
}

// trailing is the comma that makes a tuple of one.
func trailing(names []string) string {
	if len(names) == 1 {
		return ","
	}
	return ""
}

func arguments(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = name + "=" + name
	}
	return strings.Join(all, ", ")
}

// loop is the training in the library's terms.
func (s seen) loop(made suggestion) string {
	metric := made.metric
	switch s.library() {
	case "Hugging Face":
		return `tuning = TandemCallback(trial)            # from tandem.integrations.transformers import TandemCallback
# TrainingArguments(num_train_epochs=trial.epochs_total, eval_strategy="epoch", save_strategy="epoch", ...)
# Trainer(..., callbacks=[tuning])
trainer.train(resume_from_checkpoint=tuning.checkpoint)
`
	case "Lightning":
		return `tuning = TandemCallback(trial)            # from tandem.integrations.lightning import TandemCallback
trainer = Trainer(max_epochs=trial.epochs_total, callbacks=[tuning])
trainer.fit(model, data, ckpt_path=tuning.checkpoint)
`
	case "Keras":
		return `tuning = TandemCallback(trial)            # from tandem.integrations.keras import TandemCallback
model.fit(x, y, epochs=trial.epochs_total, initial_epoch=trial.first_epoch - 1, callbacks=[tuning])
`
	case "XGBoost":
		rounds := 10
		if made.epochs != "" {
			rounds = 1
		}
		return fmt.Sprintf(`booster = xgboost.Booster()
booster = booster if trial.restore(booster.load_model) else None
for epoch in trial.epochs():              # so many rounds of boosting each
    booster = xgboost.train(settings, data, %d, xgb_model=booster)
    trial.report(%s=evaluate(booster))
    trial.checkpoint(booster.save_model)
`, rounds, metric)
	case "scikit-learn":
		return fmt.Sprintf(`for epoch in trial.epochs():              # model.partial_fit, or a larger share of the data
    model.fit(*first(data, trial.data_fraction))
    trial.report(%s=evaluate(model))
`, metric)
	default:
		return fmt.Sprintf(`trial.restore(lambda path: load(path))    # torch.load(path, weights_only=True), or your own
for epoch in trial.epochs():
    train_one_epoch()
    trial.report(%s=evaluate())
    trial.checkpoint(lambda path: save(path))
`, metric)
	}
}
