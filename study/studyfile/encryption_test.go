package studyfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/studyfile"
)

func TestEncryption(t *testing.T) {
	const key = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	const hash = "0e12345678901234567890123456789012345678901234567890123456789012"
	const rest = "\nname: n\nobjective: {metric: a, direction: maximize}\nspace: {x: {type: float, low: 0, high: 1}}\nbudget: {policy: epochs, epochs: 3}\nstop: {trials: 1}\n"
	for name, test := range map[string]struct{ file, path, say string }{
		"one key":        {file: "command: [x]\nencryption: {recipients: [" + key + "]}"},
		"a data set":     {file: "command: [x]\nencryption: {recipients: [" + key + "], datasets: {scans: " + hash + "}}"},
		"a bad name":     {"command: [x]\nencryption: {recipients: [" + key + "], datasets: {My scans: " + hash + "}}", "encryption.datasets.My scans", "lower-case letters"},
		"no hash":        {"command: [x]\nencryption: {recipients: [" + key + "], datasets: {scans: 3f7a}}", "encryption.datasets.scans", "64 hexadecimal digits"},
		"no data sets":   {"command: [x]\nencryption: {recipients: [" + key + "], datasets: []}", "encryption.datasets", "1 to 32 data sets"},
		"data sets only": {"command: [x]\nencryption: {datasets: {scans: " + hash + "}}", "encryption.recipients", "list of public keys"},
		"no command":     {"encryption: {recipients: [" + key + "]}", "encryption", "needs a command"},
		"no list":        {"command: [x]\nencryption: {recipients: " + key + "}", "encryption.recipients", "1 to 8 public keys"},
		"an empty one":   {"command: [x]\nencryption: {recipients: []}", "encryption.recipients", "1 to 8 public keys"},
		"too many":       {"command: [x]\nencryption: {recipients: [" + strings.Repeat(key+", ", 9) + "]}", "encryption.recipients", "1 to 8 public keys"},
		"none at all":    {"command: [x]\nencryption: {}", "encryption.recipients", "list of public keys"},
		"no key":         {"command: [x]\nencryption: {recipients: [" + key + ", bob]}", "encryption.recipients[1]", "tandem keys create"},
	} {
		t.Run(name, func(t *testing.T) {
			def, err := studyfile.Parse([]byte(test.file+rest), studyfile.YAML)
			if test.say == "" {
				if err != nil || def.Recipients()[0] != key || strings.Contains(name, "data set") && def.Datasets()["scans"] != hash {
					t.Errorf("got %v, %v", def.Encryption, err)
				}
				return
			}
			if fault := new(problem.Error); !errors.As(err, &fault) || len(fault.Fields) != 1 || fault.Fields[0].Path != test.path || !strings.Contains(fault.Fields[0].Message, test.say) {
				t.Errorf("got %v", err)
			}
		})
	}
}
