package startcmd

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// suggestion is the study that is written.
type suggestion struct {
	// space and comments are the lines of the parameters, tuned and not.
	space, comments []string
	// tuned and left are the options of these.
	tuned, left []string
	// epochs is the option that says how many to train, and most its default.
	epochs string
	most   int
	metric string
	// minimize says that less of the metric is better.
	minimize bool
}

// A rule says what to try of an option by its name, around its default.
type rule struct {
	name func() *regexp.Regexp
	kind string // model or training
	try  func(option) string
}

// named matches whole words of an option's name. It is compiled when it is first asked
// for: every start of the program would wait for it.
func named(words string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)(^|[_.-])(` + words + `)([_.-]|$)`) })
}

// never are options that are no hyperparameters whatever they hold.
var never = named(`seed|device|gpu|gpus|cuda|workers|num_workers|threads|data|dir|path|file|folder|root|output|out|log|logs|logging|interval|freq|every|save|resume|checkpoint|ckpt|project|name|host|port|rank|world|verbose|debug|dry|dry_run|eval|evaluate|test|wandb|profile|classes|num_classes|version|download|patience|limit|samples|print|quiet|cache|nthread|n_jobs`)

// held are those of the validation, which change nothing that is measured.
var held = named(`eval|test|val|valid|validation`)

// trains are the options that say for how long.
var trains = regexp.MustCompile(`(?i)(^|[_.])(n_|num_|max_|num_train_|train_)?(epochs?|boost_rounds?|rounds)$`)

// rules are tried in this order. The ranges are those that the libraries' guides and
// published searches use around a default; they are guesses, and the file says so.
var rules = []rule{
	{named(`lr|lr0|learning_?rate|eta|base_lr|max_lr`), "training", scaled(30, 1)},
	{named(`weight_?decay|wd|l1|l2|reg_?alpha|reg_?lambda|regularization`), "training", scaled(100, 100)},
	{named(`dropout|drop_?rate|drop_?path|attention_dropout|p_drop|dropout_p`), "model", between(0, 0.5)},
	{named(`momentum|beta_?1`), "training", between(0.5, 0.99)},
	{named(`beta_?2`), "training", between(0.9, 0.9999)},
	{named(`label_?smoothing|smoothing|mixup|cutmix`), "training", between(0, 0.3)},
	{named(`warmup_?ratio`), "training", between(0, 0.2)},
	{named(`subsample|colsample_?bytree|colsample_?bylevel|max_?samples|max_?features`), "training", between(0.5, 1)},
	{named(`min_?child_?weight|min_?samples_?leaf|min_?samples_?split|gradient_accumulation_steps`), "training", counted(4, false)},
	{named(`(grad(ient)?_?)?clip(_?norm)?|max_?grad_?norm`), "training", scaled(10, math.Inf(1))},
	{named(`batch_?size|bs|batch|train_batch_size`), "training", powers},
	{named(`layers|n_layers|num_layers|depth|max_?depth|blocks|heads|num_heads`), "model", counted(2, false)},
	{named(`hidden|hidden_?(size|dim|units)|units|channels|width|dim|d_model|embed(ding)?(_?(dim|size))?|filters|max_leaves|num_leaves`), "model", powers},
	{named(`n_estimators|trees`), "model", counted(4, true)},
	{named(`optimi[sz]er|optim|opt|activation|act|scheduler|lr_scheduler|schedule|kernel|solver|penalty|criterion|booster|norm|pooling|init|nesterov|amsgrad|batch_?norm|bias|augment|augmentation`), "training", chosen},
}

// suggest makes a study of what was read.
func suggest(found seen) suggestion {
	made := suggestion{most: 9}
	for _, one := range found.Options {
		if value, ok := one.number(); trains.MatchString(one.Name) && (ok || one.Default == nil) {
			if made.epochs == "" {
				made.epochs = one.Name
				if value >= 1 {
					made.most = int(min(value, 10000))
				}
			}
			continue
		}
		made.add(one)
	}
	made.aim(found)
	return made
}

// add puts an option into the space, or into the comments.
func (s *suggestion) add(one option) {
	last := one.Name[strings.LastIndexByte(one.Name, '.')+1:]
	batch := strings.Contains(last, "batch_size") && !held().MatchString(last)
	if !fit().MatchString(one.Name) || never().MatchString(last) && !batch {
		return
	}
	was := "has no default"
	if one.Default != nil {
		was = "is " + yaml(one.Default)
	}
	for _, rule := range rules {
		if !rule.name().MatchString(last) {
			continue
		}
		tried := rule.try(one)
		if len(one.Choices) > 1 { // the script takes nothing else
			tried = chosen(one)
		}
		if tried != "" {
			if rule.kind == "model" {
				tried = "kind: model, " + tried
			}
			s.space = append(s.space, fmt.Sprintf("  %s: {%s} # %s", one.Name, tried, was))
			s.tuned = append(s.tuned, one.Name)
			return
		}
	}
	tried := chosen(one)
	if value, ok := one.number(); ok && value > 0 && tried == "" {
		tried = map[string]func(option) string{"int": counted(2, false), "float": scaled(10, math.Inf(1))}[one.Kind](one)
	}
	if tried != "" {
		s.comments = append(s.comments, fmt.Sprintf("  # %s: {%s} # %s", one.Name, tried, was))
		s.left = append(s.left, one.Name)
	}
}

// fit are names that a parameter can have.
var fit = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`) })

// scaled tries from a share of the default to a multiple of it, logarithmically, and
// up to 1 where the default is at most 1. Without one it tries small numbers.
func scaled(times, most float64) func(option) string {
	return func(o option) string {
		value, ok := o.number()
		if o.Kind != "float" && o.Kind != "int" || value < 0 {
			return ""
		}
		if o.Kind == "int" && ok && value > 1 && times > 10 {
			return ""
		}
		if !ok || value == 0 {
			if most > 100 {
				return ""
			}
			return "type: float, low: 1e-6, high: 0.1, log: true"
		}
		high := value * times
		if most == 1 && value <= 1 || times == 10 && value < 1 {
			high = min(high, 1)
		}
		return fmt.Sprintf("type: float, low: %s, high: %s, log: true", rounded(value/times), rounded(high))
	}
}

// between tries a range, and wider where the default lies outside.
func between(low, high float64) func(option) string {
	return func(o option) string {
		value, ok := o.number()
		if o.Kind != "float" && !(o.Kind == "int" && (value == 0 || value == 1)) || ok && (value < 0 || value > 1) {
			return ""
		}
		if ok {
			low, high := min(low, value), max(high, value)
			return fmt.Sprintf("type: float, low: %s, high: %s", exact(low), exact(high))
		}
		return fmt.Sprintf("type: float, low: %s, high: %s", exact(low), exact(high))
	}
}

// counted tries whole numbers around the default.
func counted(times float64, log bool) func(option) string {
	return func(o option) string {
		value, ok := o.number()
		if !ok || o.Kind != "int" || value < 1 {
			return ""
		}
		text := fmt.Sprintf("type: int, low: %.0f, high: %.0f", max(1, math.Floor(value/times)), value*times)
		if log {
			text += ", log: true"
		}
		return text
	}
}

// powers tries powers of two around the default.
func powers(o option) string {
	value, ok := o.number()
	if !ok || o.Kind != "int" || value < 1 || value > 1<<30 {
		return ""
	}
	middle := math.Exp2(math.Round(math.Log2(value)))
	var values []string
	for _, times := range []float64{0.25, 0.5, 1, 2, 4} {
		if one := middle * times; one >= 1 {
			values = append(values, exact(one))
		}
	}
	return "type: ordinal, values: [" + strings.Join(values, ", ") + "]"
}

// chosen tries all choices, or both of a boolean.
func chosen(o option) string {
	if o.Kind == "bool" && len(o.Choices) == 0 {
		return "values: [true, false]"
	}
	if len(o.Choices) < 2 {
		return ""
	}
	values := make([]string, len(o.Choices))
	for i, choice := range o.Choices {
		values[i] = yaml(choice)
	}
	list := "values: [" + strings.Join(values, ", ") + "]"
	if o.Kind == "int" || o.Kind == "float" {
		return "type: ordinal, " + list
	}
	return list
}

// metrics are what scripts measure, the best to look for first.
var metrics = []string{"val_accuracy", "val_acc", "eval_accuracy", "test_accuracy", "accuracy", "acc", "f1", "auc", "r2", "bleu", "val_loss", "eval_loss", "test_loss", "rmse", "mse", "mae", "loss"}

// aim guesses the objective from the script's names and texts, else what XGBoost prints of its own.
func (s *suggestion) aim(found seen) {
	s.metric = "loss"
	if found.library() == "XGBoost" {
		s.metric = "rmse"
		for begins, metric := range map[string]string{"binary:": "logloss", "multi:": "mlogloss"} {
			if slices.ContainsFunc(found.Words, func(word string) bool { return strings.HasPrefix(word, begins) }) {
				s.metric = metric
			}
		}
	}
	for _, metric := range metrics {
		if slices.Contains(found.Words, metric) {
			s.metric = metric
			break
		}
	}
	s.minimize = slices.ContainsFunc([]string{"loss", "mse", "mae"}, func(less string) bool { return strings.Contains(s.metric, less) })
}

// rounded has one significant digit.
func rounded(value float64) string {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'e', 0, 64), 64)
	return exact(short)
}

func exact(value float64) string {
	text := strconv.FormatFloat(value, 'g', -1, 64)
	return strings.Replace(text, "e-0", "e-", 1)
}
