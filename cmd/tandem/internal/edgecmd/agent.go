package edgecmd

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/board"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
	"github.com/tandem-tune/tandem/internal/format"
)

// agentFlags are the flags of "tandem edge agent".
type agentFlags struct {
	server       term.Connection
	name, device string
	meter        string
	memory       byteSize
	precision    emulator.Precision
	library      onnxruntime.Options
	force        bool
}

func agentCommand() *cobra.Command {
	flags := agentFlags{memory: emulator.DefaultMemoryBytes}
	command := &cobra.Command{
		Use:   "agent --device NAME",
		Short: "Measure on this board the models that studies train",
		Long: `Measure on this board the models that studies train, while they train, so that what
is recommended for the board was measured on it.

Run it on the board and leave it running. It needs ONNX Runtime, and a token of the
scope device. A name of the catalogue (tandem edge devices) makes the board one of
those; with another name studies write board/NAME among their devices. Several boards
of one device share the work.

The server sends models without weights and without names. They are read and run by
processes that can open no file and no connection. Batches and threads are set;
clocks stay as they are.`,
		Example: `  tandem token create --scope device --name pi-kitchen > device.token    # by an administrator
  tandem edge agent --server https://tandem.example:7171 --token-file device.token --device raspberry-pi-4
  tandem edge agent --server https://tandem.example:7171 --token-file device.token --device camera-2 --meter http://plug.local/status#power`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error { return flags.run(command) },
	}
	set := command.Flags()
	set.StringVar(&flags.device, "device", "", "what this board is: a name of the catalogue, or one of your own (required)")
	set.StringVar(&flags.name, "name", "", "this board's own name: a second agent of one name is refused (default this host's)")
	set.Var(&flags.memory, "memory", "memory a model may take beyond the loaded library")
	set.Float64Var(&flags.precision.Seconds, "seconds", 5, "how long each setting is measured at most")
	set.Float64Var(&flags.precision.RelativeWidth, "width", emulator.DefaultRelativeWidth, "measure until the 95% interval of the median is this narrow, as a part of the median")
	set.StringVar(&flags.library.Named, "onnxruntime", "", "ONNX Runtime's shared library, or the folder it is in (default: $"+onnxruntime.Variable+", else looked for)")
	set.BoolVar(&flags.force, "force", false, "be a device of the catalogue on another processor than that device's")
	AddMeterFlag(command, &flags.meter)
	term.AddConnectionFlags(command, &flags.server)
	return command
}

func (f *agentFlags) run(command *cobra.Command) error {
	ctx := command.Context()
	if f.device == "" {
		return term.Misuse("--device must say what this board is: a name of the catalogue (tandem edge devices), or one of your own")
	}
	own := ThisMachine()
	if _, err := own.Device(); err != nil {
		return err
	}
	logger := term.NewLogger(command.ErrOrStderr(), slog.LevelInfo)
	name, err := f.deviceName(own, logger)
	if err != nil {
		return err
	}
	library, err := onnxruntime.Find(ctx, f.library)
	if err != nil {
		return err
	}
	client, err := f.server.OpenWithToken("a board needs a token of the scope device")
	if err != nil {
		return err
	}
	if f.name == "" {
		f.name = term.HostName()
	}
	meter, done, err := OpenMeter(f.meter)
	if err != nil {
		return err
	}
	defer done()
	site := emu.Site(own)
	site.Software = software(library)
	var lacking []string
	if site.Providers, lacking = emulator.Providers(ctx, library); len(lacking) > 0 {
		logger.Info("execution providers that this board cannot use", "reasons", lacking)
	}
	agent := board.Agent{
		Meter:  meter,
		Server: client, Process: rand.Text(), Board: f.name, Device: name, Site: site, Library: library, MemoryBytes: int64(f.memory),
		Precision: f.precision, Logger: logger,
	}
	logger.Info("this board asks for models to measure", "board", f.name, "device", name, "processor", own.Processor, "cores", own.Cores)
	return agent.Run(ctx)
}

// software is what inferences run with: the library by its full name, which has its version,
// and the kernel.
func software(library string) string {
	if target, err := filepath.EvalSymlinks(library); err == nil {
		library = target
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease") // without it the library alone tells
	return strings.ToValidUTF8(strings.TrimSpace(filepath.Base(library)+", Linux "+string(kernel)), "?")
}

// deviceName is the device as studies name it.
func (f *agentFlags) deviceName(own device.Machine, logger *slog.Logger) (string, error) {
	devices, err := device.Catalogue()
	if err != nil {
		return "", err
	}
	name := strings.TrimPrefix(f.device, device.BoardPrefix)
	found, err := device.Find(devices, name)
	switch {
	case err == nil && !f.force && !found.MayBe(own.Processor):
		return "", term.Misuse("--device %s has the processor %q, and this machine's is %q: name a device of your own, or be that one all the same with --force", name, found.Processor.Value, own.Processor)
	case err == nil:
		return name, nil
	case name == device.ThisMachine || !device.IsName(name):
		return "", term.Misuse("--device (%q) must have small letters, digits and single hyphens, and not be %s, which is each worker's own machine", f.device, device.ThisMachine)
	}
	if _, near, typo := strings.Cut(err.Error(), "did you mean "); typo {
		logger.Warn("the catalogue does not have the device: it is one of your own", "device", name, "near", near)
	}
	return device.BoardPrefix + name, nil
}

func boardsCommand() *cobra.Command {
	var flags term.Flags
	command := term.List[emu.Board]{
		Short: "List the boards that measure models for a server's studies", Key: "boards",
		Example: `  tandem edge boards
  tandem edge boards --json`,
		Get: (*rest.Client).Boards, Print: printBoards,
	}.Command(&flags)
	command.Use = "boards"
	flags.Add(command)
	return command
}

func printBoards(out io.Writer, list []emu.Board) error {
	heading := []string{"BOARD", "DEVICE", "PROCESSOR", "CORES", "PROVIDERS", "SEEN", "MEASURED", "NOW"}
	return term.Rows(out, list, "No board asked in the last day: run \"tandem edge agent\" on one.", heading, func(one emu.Board) []string {
		doing := "waits"
		switch {
		case time.Since(one.Seen) > time.Minute: // it asks every 20 seconds, also while it measures
			doing = "silent"
		case one.Measuring != "":
			doing = "measures " + one.Measuring[:min(len(one.Measuring), 12)]
		case one.Failure != "":
			doing = "failed: " + format.Plain(one.Failure)
		}
		if one.ServerVersion != "" {
			doing += fmt.Sprintf("; is tandem %s, the server %s", format.Plain(one.Version), format.Plain(one.ServerVersion))
		}
		return []string{format.Plain(one.Name), one.Device, format.Plain(one.Site.Processor), fmt.Sprint(one.Site.Cores), format.Plain(strings.Join(append([]string{emu.CPU}, one.Site.Providers...), ", ")),
			show.Span(time.Since(one.Seen).Seconds()) + " ago", fmt.Sprint(one.Measured), doing}
	})
}
