//go:build fakeenclave

package enclave

import (
	"encoding/json"
	"errors"
	"net"
	"os"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// fake asks a test, at a Unix socket, to sign as a processor that does not exist.
func fake() (sign device, tee string) {
	socket := os.Getenv("TANDEM_FAKE_ENCLAVE")
	if socket == "" {
		return nil, ""
	}
	ask := func(data [64]byte) (made evidence.Evidence, err error) {
		err = asked(socket, data[:], &made)
		return made, err
	}
	first, err := ask([64]byte{})
	if err != nil {
		return nil, "" // there is no such machine
	}
	return func(data [64]byte) ([]byte, []byte, error) {
		made, err := ask(data)
		return made.Report, made.Certificate, err
	}, first.TEE
}

// fakeGPUs asks a test to sign as GPUs that do not exist, two at most.
func fakeGPUs() graphics {
	socket := os.Getenv("TANDEM_FAKE_GPUS")
	if socket == "" {
		return nil
	}
	return func(nonce func(int) [32]byte) (list []evidence.GPU, err error) {
		first, second := nonce(0), nonce(1)
		if err = asked(socket, append(first[:], second[:]...), &list); err == nil && len(list) == 0 {
			err = errors.New("the test has no GPU")
		}
		return list, err
	}
}

// asked sends the question to a test's socket and reads the answer.
func asked(socket string, question []byte, into any) error {
	to, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := to.Write(question); err != nil {
		return err
	}
	return json.NewDecoder(to).Decode(into)
}
