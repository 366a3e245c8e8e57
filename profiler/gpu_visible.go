package profiler

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
)

// visibleGPUs are the GPUs that a command with the environment may use, by their
// numbers: all, or those of CUDA_VISIBLE_DEVICES. As CUDA does, it reads the list
// up to the first entry that names no GPU. A nil environment is this process's.
func visibleGPUs(environment []string, devices []gpuDevice) ([]int, error) {
	if environment == nil {
		environment = os.Environ()
	}
	list, given := variable(environment, "CUDA_VISIBLE_DEVICES")
	var visible []int
	if !given {
		for device := range devices {
			visible = append(visible, device)
		}
		return visible, nil
	}
	order, _ := variable(environment, "CUDA_DEVICE_ORDER")
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if strings.HasPrefix(entry, "MIG-") {
			return nil, errors.New("the command may use a part of a GPU (MIG), and NVML tells only of whole ones")
		}
		device, numbered := findGPU(entry, devices)
		if device < 0 {
			break
		}
		if numbered && order != "PCI_BUS_ID" && differ(devices) {
			return nil, errors.New("CUDA numbers GPUs of different models by their speed: set CUDA_DEVICE_ORDER=PCI_BUS_ID, or give CUDA_VISIBLE_DEVICES their UUIDs")
		}
		if !slices.Contains(visible, device) {
			visible = append(visible, device)
		}
	}
	return visible, nil
}

// findGPU is the GPU that an entry names by its number or by the beginning of
// its UUID; -1 when there is none.
func findGPU(entry string, devices []gpuDevice) (device int, numbered bool) {
	if number, err := strconv.Atoi(entry); err == nil {
		if number < 0 || number >= len(devices) {
			return -1, true
		}
		return number, true
	}
	device = -1
	for i, one := range devices {
		if strings.HasPrefix(entry, "GPU-") && strings.HasPrefix(one.uuid, entry) {
			if device >= 0 {
				return -1, false // it could be either
			}
			device = i
		}
	}
	return device, false
}

func differ(devices []gpuDevice) bool {
	return slices.ContainsFunc(devices, func(d gpuDevice) bool { return d.model != devices[0].model })
}

// variable is the last value of a variable in an environment.
func variable(environment []string, name string) (value string, given bool) {
	for _, entry := range slices.Backward(environment) {
		if value, given = strings.CutPrefix(entry, name+"="); given {
			return value, true
		}
	}
	return "", false
}
