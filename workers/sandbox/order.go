package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// order is what the launcher is to do.
type order struct {
	// Probe asks which layers there are; nothing is started.
	Probe bool `json:"probe,omitempty"`
	// Layers are those to apply. All of them have to hold.
	Layers []string `json:"layers"`
	// Offline forbids connections of every kind but those to sockets in files.
	Offline bool `json:"offline,omitempty"`
	// Temporary is the folder that stands for /tmp and /var/tmp.
	Temporary string `json:"temporary,omitempty"`
	Reach     shared `json:"reach"`
	// Threads lets it write to the files of processes in /proc.
	Threads bool `json:"threads,omitempty"`

	Path        string   `json:"path,omitempty"`
	Arguments   []string `json:"arguments,omitempty"`
	Environment []string `json:"environment,omitempty"`
	Directory   string   `json:"directory,omitempty"`
}

// shared is a reach as it goes to the launcher.
type shared struct {
	Read    []string `json:"read,omitempty"`
	Write   []string `json:"write,omitempty"`
	List    []string `json:"list,omitempty"`
	Devices []string `json:"devices,omitempty"`
}

func (o order) has(layer string) bool {
	return slices.Contains(o.Layers, layer)
}

// answer is what the launcher says before it ends. One that becomes the command
// says nothing.
type answer struct {
	Layers []Layer `json:"layers,omitempty"`
	// Failure says why the command was not started; Refused is the kernel's
	// reason when all layers held and the program itself was refused.
	Failure string     `json:"failure,omitempty"`
	Refused unix.Errno `json:"refused,omitempty"`
}

// The launcher's descriptors.
const (
	orderDescriptor  = 3
	answerDescriptor = 4
)

// file has the order in memory: unlike a pipe it takes any amount at once.
func (o order) file() (*os.File, error) {
	content, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write the launcher's order: %w", err)
	}
	descriptor, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory for the launcher's order: %w", err)
	}
	file := os.NewFile(uintptr(descriptor), "order")
	if _, err := file.WriteAt(content, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("write the launcher's order: %w", err), file.Close())
	}
	return file, nil
}

// readOrder reads the order from the beginning of the file, wherever another
// reader has left it.
func readOrder(file *os.File) (order, error) {
	var o order
	about, err := file.Stat()
	if err != nil {
		return o, err
	}
	decoder := json.NewDecoder(io.NewSectionReader(file, 0, about.Size()))
	decoder.DisallowUnknownFields()
	return o, decoder.Decode(&o)
}
