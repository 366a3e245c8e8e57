package device_test

import (
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/device"
)

func TestWhichProcessorADeviceMayHave(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		device, kernel string
		want           bool
	}{
		{"Broadcom BCM2711", "Intel(R) Xeon(R) Processor @ 2.10GHz", false},
		{"Broadcom BCM2711", "AMD EPYC 7763 64-Core Processor", false},
		{"Broadcom BCM2711", "", true},
		{"Broadcom BCM2711", "ARMv7 Processor rev 3 (v7l)", true},
		{"Broadcom BCM2711", "Cortex-A72", true},
		{"Broadcom BCM2711", "Cortex-A53", false},
		{"Broadcom BCM2711", "BCM2835", false},
		{"NVIDIA Tegra X1 (T210)", "ARMv8 Processor rev 1 (v8l)", true},
		{"Intel Core i7-8559U", "Intel(R) Core(TM) i7-8559U CPU @ 2.70GHz", true},
		{"Intel Core i7-8559U", "Intel(R) Core(TM) i5-8259U CPU @ 2.30GHz", false},
		{"Intel Core i7-8559U", "ARMv8 Processor rev 1 (v8l)", false},
		{"Intel Xeon Platinum 8380", "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", true},
		{"Intel Xeon Platinum 8380", "Intel(R) Xeon(R) Processor @ 2.10GHz", true},
		{"Intel Xeon Platinum 8380", "AMD EPYC 8380", false},
		{"unknown processor", "Intel(R) Xeon(R) Processor", true},
		{"Virtual CPU of Somebody", "Virtual CPU of Somebody", true},
	} {
		d := device.Device{Processor: device.Value[string]{Value: one.device}, Clusters: []device.Cluster{{Core: "cortex-a72"}}}
		if got := d.MayBe(one.kernel); got != one.want {
			t.Errorf("%q may be %q: %v", one.kernel, one.device, got)
		}
	}
}
