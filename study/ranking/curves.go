package ranking

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

const (
	usualCurves = 100
	maxCurves   = 500
	// mostPoints bounds the epochs of one curve.
	mostPoints = 300
)

// Curves returns learning curves of the study's trials: of many, the best by
// rank and a part of the others.
func (q *Queries) Curves(ctx context.Context, ref string, query protocol.CurvesQuery) (protocol.Curves, error) {
	now, err := q.options.Look(ctx, ref)
	if err != nil {
		return protocol.Curves{}, err
	}
	answer := protocol.Curves{Study: now.Study.Definition.Name, Sequence: now.Sequence, Metrics: metricsOf(now.Trials), Curves: []protocol.Curve{}}
	if answer.Metric, err = metricAsked(query.Metric, now.Study.Definition.Objectives[0].Metric, answer.Metrics); err != nil {
		return protocol.Curves{}, err
	}
	reported := slices.DeleteFunc(Rank(now.Trials, now.Study.Definition.Objectives), func(p Place) bool { return p.trial.Epochs == 0 })
	limit := min(cmp.Or(max(query.Limit, 0), usualCurves), maxCurves)
	reported, answer.Sample = sampled(reported, limit, func(p Place) int { return p.trial.Number })
	for _, one := range reported {
		reports, err := q.store.Reports(ctx, one.trial.ID)
		if err != nil {
			return protocol.Curves{}, err
		}
		if curve := curveOf(reports, answer.Metric); len(curve.Epochs) > 0 {
			curve.Number, curve.Rank = one.trial.Number, one.rank
			answer.Curves = append(answer.Curves, curve)
		}
	}
	return answer, nil
}

// metricsOf are the names of all metrics that the trials reported last.
func metricsOf(trials []trial.Trial) []string {
	names := make(map[string]bool)
	for _, t := range trials {
		for name := range t.Last {
			names[name] = true
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(names))...)
}

// metricAsked is the metric that curves are wanted of. One that no trial has
// reported is a fault only once there are others.
func metricAsked(wanted, objective string, metrics []string) (string, error) {
	if wanted != "" && len(metrics) > 0 && !slices.Contains(metrics, wanted) {
		return "", problem.WithFields("the query is not valid", []problem.Field{
			{Path: "metric", Value: wanted, Message: "must be a metric that trials reported: " + strings.Join(metrics, ", ")}})
	}
	if wanted == "" && slices.Contains(metrics, objective) || wanted == "" && len(metrics) == 0 {
		return objective, nil
	}
	if wanted == "" {
		return metrics[0], nil
	}
	return wanted, nil
}

// curveOf is the metric over the reports that have it.
func curveOf(reports []trial.Report, metric string) protocol.Curve {
	curve := protocol.Curve{Rungs: []int{}, Epochs: []int{}, Values: []trial.Float{}}
	reports = slices.DeleteFunc(slices.Clone(reports), func(r trial.Report) bool {
		_, has := r.Metrics[metric]
		return !has
	})
	step := max(1, (len(reports)+mostPoints-1)/mostPoints)
	for i, report := range reports {
		if i%step != 0 && i != len(reports)-1 {
			continue
		}
		curve.Rungs = append(curve.Rungs, report.Rung)
		curve.Epochs = append(curve.Epochs, report.Epoch)
		curve.Values = append(curve.Values, report.Metrics[metric])
	}
	return curve
}
