package studyfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/studyfile"
)

func TestConfidential(t *testing.T) {
	const policy = "0e12345678901234567890123456789012345678901234567890123456789012"
	const base = "command: [x]\nencryption: {recipients: [age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p]}\n"
	const rest = "\nname: n\nobjective: {metric: a, direction: maximize}\nspace: {x: {type: float, low: 0, high: 1}}\nbudget: {policy: epochs, epochs: 3}\nstop: {trials: 1}\n"
	told := func(section string) string {
		return base + strings.ReplaceAll("confidential: {policy: P, metrics: {a: {low: 0, high: 1, round: 0.01}}"+section+"}", "P", policy)
	}
	metric := func(one string) string {
		return base + "confidential: {policy: " + policy + ", metrics: {a: " + one + "}}"
	}
	for name, test := range map[string]struct{ file, path, say string }{
		"the least":         {file: told("")},
		"a tail":            {file: told(", log: tail-on-failure")},
		"another log":       {told(", log: all"), "confidential.log", "must be none, or tail-on-failure"},
		"another field":     {told(", data: x"), "confidential.data", "is not a field"},
		"no encryption":     {strings.Replace(told(""), "encryption:", "environment: {}\nsecrets: []\ndescription: x #", 1), "confidential", "needs encryption.recipients"},
		"a model":           {told("") + "\ninference: {devices: [raspberry-pi-5]}", "inference", "leave it out"},
		"tuning":            {told("") + "\nsystem: auto", "system", "put off, or constants"},
		"no id":             {base + "confidential: {policy: cc.yaml, metrics: {a: {low: 0, high: 1, round: 0.01}}}", "confidential.policy", "64 hexadecimal digits"},
		"no policy":         {base + "confidential: {metrics: {a: {low: 0, high: 1, round: 0.01}}}", "confidential.policy", "tandem policy sign"},
		"no metrics":        {base + "confidential: {policy: " + policy + "}", "confidential.metrics", "low: 0"},
		"none of them":      {base + "confidential: {policy: " + policy + ", metrics: {}}", "confidential.metrics", "1 to 32 metrics"},
		"another one":       {strings.Replace(metric("{low: 0, high: 1, round: 0.01}"), "{a:", "{b:", 1), "confidential.metrics", "lacks a"},
		"no bounds":         {metric("{round: 0.01}"), "confidential.metrics.a.low", "a number"},
		"upside down":       {metric("{low: 1, high: 0, round: 0.01}"), "confidential.metrics.a", "low below high"},
		"not rounded":       {metric("{low: 0, high: 1, round: 0}"), "confidential.metrics.a", "a round above 0"},
		"too precise":       {metric("{low: 0, high: 1, round: 1e-12}"), "confidential.metrics.a", "a billion times"},
		"nothing to choose": {metric("{low: 0, high: 1, round: 2}"), "confidential.metrics.a", "at most their difference"},
	} {
		t.Run(name, func(t *testing.T) {
			def, err := studyfile.Parse([]byte(test.file+rest), studyfile.YAML)
			if test.say == "" {
				if err != nil || def.PolicyOf() != policy || def.Sandbox != "strict" || def.System.Word != "off" || def.Confidential.Metrics["a"].Round != 0.01 {
					t.Fatalf("got %+v, %v", def.Confidential, err)
				}
				comesBack(t, def)
				return
			}
			fault := new(problem.Error)
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			for _, one := range fault.Fields {
				if one.Path == test.path && strings.Contains(one.Message, test.say) {
					return
				}
			}
			t.Errorf("got %v", err)
		})
	}
}
