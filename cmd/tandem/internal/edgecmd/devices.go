package edgecmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/internal/format"
)

// devicesCommand lists the devices that models can be deployed on, or shows
// one with the source of every value.
func devicesCommand() *cobra.Command {
	var asJSON bool
	var own []string
	command := &cobra.Command{
		Use:   "devices [name]",
		Short: "List the known devices, or show one with the source of every value",
		Long: "List the known devices, or show one with the source of every value, in JSON, as --device-file takes it.\n\n" +
			"this-machine is the machine that the command runs on: its cores, clocks and memory are read, and its memory's speed is measured.\n" +
			"With --device-file, devices that you describe yourself are listed too; one of the same name takes a known one's place.",
		Example: "  tandem edge devices\n  tandem edge devices raspberry-pi-4\n  tandem edge devices --device-file my-board.yaml my-board",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			devices, err := knownDevices(own)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if len(args) == 0 {
				return term.PrintAnswer(out, asJSON, devices, printDevices)
			}
			one, err := findDevice(devices, args[0])
			if err != nil {
				return err
			}
			return term.WriteJSON(out, one)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	command.Flags().StringArrayVar(&own, "device-file", nil, "YAML `file` that describes a device of your own; may be repeated")
	return command
}

// knownDevices are the catalogue's and those of the user's files.
func knownDevices(files []string) ([]device.Device, error) {
	devices, err := device.Catalogue()
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		one, err := readDeviceFile(path)
		if err != nil {
			return nil, term.Misuse("%s: %w", path, err)
		}
		devices = device.Add(devices, one)
	}
	return devices, nil
}

// readDeviceFile reads and checks a device that a user describes.
func readDeviceFile(path string) (device.Device, error) {
	data, err := term.ReadBounded(path, nil, device.MaxFileBytes)
	if err != nil {
		return device.Device{}, err
	}
	return device.Read(data)
}

// findDevice is [device.Find], and knows this machine.
func findDevice(devices []device.Device, name string) (device.Device, error) {
	found, err := device.Find(devices, name)
	if err == nil {
		return found, nil
	}
	if name != device.ThisMachine {
		return found, term.Misuse("%w\n--device-file describes others (see docs/edge.md)", err)
	}
	return ThisMachine().Device()
}

// printDevices prints a line for each device.
func printDevices(out io.Writer, devices []device.Device) error {
	var rows [][]string
	for _, d := range devices {
		rows = append(rows, []string{d.Name, format.Plain(d.Title), strconv.Itoa(d.Cores()),
			perSecond(d.Float32OperationsPerSecond()), shownAccelerators(d.Accelerators), format.Size(d.Memory.Bytes.Value), byteRate(d.Memory.BytesPerSecond.Value),
			fmt.Sprintf("%g-%g W", d.Power.IdleWatts.Value, d.Power.LoadWatts.Value)})
	}
	if err := term.Table(out, []string{"NAME", "DEVICE", "CORES", "FLOAT32", "ACCELERATORS", "MEMORY", "BANDWIDTH", "POWER"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nFLOAT32 is the peak of all cores together, in operations a second; POWER is idle and at load. tandem edge devices NAME says where each value is from.\n"+
		"%s is the machine this runs on.\n", device.ThisMachine)
	return err
}

func shownAccelerators(accelerators []device.Accelerator) string {
	var parts []string
	for _, a := range accelerators {
		parts = append(parts, format.Plain(a.Name))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}

// perSecond is a rate of operations with a unit people know.
func perSecond(rate float64) string { return scaled(rate) + "op/s" }

// byteRate is a bandwidth.
func byteRate(rate float64) string { return scaled(rate) + "B/s" }

func scaled(value float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if value >= unit.size {
			return strconv.FormatFloat(value/unit.size, 'g', 4, 64) + " " + unit.name
		}
	}
	return strconv.FormatFloat(value, 'g', 4, 64) + " "
}
