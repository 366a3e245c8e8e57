//go:build !linux || !cgo

package profiler

import "errors"

func openGPUs() (gpuReader, error) {
	return nil, errors.New("this program was built without cgo, which NVML needs")
}
