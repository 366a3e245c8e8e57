package main

import (
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// machine is a device of the tables: how to find it there, and what its makers
// say of it. Rates are of the vector units; bandwidth is of the memory.
type machine struct {
	names  []string // all of one of them in lower case within what a table says
	device estimate.Device
}

func cpu(name string, cores int, gigahertz, float, integer float64) estimate.Device {
	return estimate.Device{Name: name, Cores: cores, ClockHertz: gigahertz * 1e9, Float32PerCycle: float, Int8PerCycle: integer}
}

// with fills in bandwidth in gigabytes per second and watts idle and under load.
func with(d estimate.Device, bandwidth, idle, load float64) estimate.Device {
	d.MemoryBytesPerSecond, d.IdleWatts, d.LoadWatts = bandwidth*1e9, idle, load
	return d
}

// gpu adds an accelerator of so many gigahertz and tera-operations per second.
func gpu(d estimate.Device, gigahertz, float, integer float64) estimate.Device {
	d.Accelerator = &estimate.Accelerator{ClockHertz: gigahertz * 1e9, Float32PerSecond: float * 1e12, Int8PerSecond: integer * 1e12}
	return d
}

// machines, the more particular names first.
func machines() []machine {
	host := with(cpu("", 8, 3, 32, 64), 300, 0, 0)
	card := func(name string, bandwidth, gigahertz, float, watts float64) estimate.Device {
		d := gpu(with(host, bandwidth, watts/5, watts), gigahertz, float, 4*float)
		d.Name = name
		return d
	}
	vim4, odroid := with(cpu("Khadas VIM4", 4, 2.2, 8, 16), 12, 2.5, 9), with(cpu("Odroid N2+", 4, 2.4, 8, 16), 10, 1.8, 7)
	rk3588 := with(cpu("RK3588S", 4, 2.4, 16, 64), 25, 2, 12)
	return []machine{
		{[]string{"rpi3"}, with(cpu("Raspberry Pi 3", 4, 1.2, 8, 16), 2.2, 1.4, 5)},
		{[]string{"raspberry", "rpi4", "raspi4"}, with(cpu("Raspberry Pi 4", 4, 1.5, 8, 16), 4, 2.7, 6.4)},
		{[]string{"vim4 opencl"}, gpu(vim4, 0.8, 0.2, 0.4)}, {[]string{"vim4"}, vim4},
		{[]string{"odroid opencl"}, gpu(odroid, 0.8, 0.1, 0.2)}, {[]string{"odroid"}, odroid},
		{[]string{"rk3588 opencl"}, gpu(rk3588, 1, 0.5, 1)}, {[]string{"rk3588"}, rk3588},
		{[]string{"xavier"}, with(cpu("Jetson AGX Xavier", 8, 2.26, 16, 32), 60, 9, 30)},
		{[]string{"orin"}, with(cpu("Jetson AGX Orin", 12, 2.2, 16, 64), 100, 10, 40)},
		{[]string{"a1.metal", "a1.4xlarge"}, with(cpu("AWS a1", 16, 2.3, 8, 16), 30, 0, 0)},
		{[]string{"a1.2xlarge"}, with(cpu("AWS a1", 8, 2.3, 8, 16), 20, 0, 0)},
		{[]string{"a1."}, with(cpu("AWS a1", 4, 2.3, 8, 16), 20, 0, 0)},
		{[]string{"t4g.2xlarge"}, with(cpu("AWS t4g", 8, 2.5, 16, 64), 40, 0, 0)},
		{[]string{"t4g."}, with(cpu("AWS t4g", 4, 2.5, 16, 64), 40, 0, 0)},
		{[]string{"c5.4xlarge"}, with(cpu("AWS c5", 8, 3.4, 64, 128), 40, 0, 0)},
		{[]string{"c5.2xlarge"}, with(cpu("AWS c5", 4, 3.4, 64, 128), 30, 0, 0)},
		{[]string{"c5."}, with(cpu("AWS c5", 2, 3.4, 64, 128), 20, 0, 0)},
		{[]string{"c5a.2xlarge"}, with(cpu("AWS c5a", 4, 3.2, 32, 64), 30, 0, 0)},
		{[]string{"c5a."}, with(cpu("AWS c5a", 2, 3.2, 32, 64), 20, 0, 0)},
		{[]string{"t3.2xlarge"}, with(cpu("AWS t3", 4, 3.1, 64, 128), 30, 0, 0)},
		{[]string{"t3."}, with(cpu("AWS t3", 2, 3.1, 64, 128), 20, 0, 0)},
		{[]string{"t2.2xlarge"}, with(cpu("AWS t2", 8, 2.3, 32, 64), 30, 0, 0)},
		{[]string{"t2."}, with(cpu("AWS t2", 4, 2.3, 32, 64), 20, 0, 0)},
		{[]string{"hp pavilion"}, with(cpu("Ryzen 5 5625U", 6, 4, 32, 64), 40, 0, 0)},
		{[]string{"sapphire"}, with(cpu("Xeon w7-2495X", 24, 3.5, 64, 256), 250, 0, 0)},
		{[]string{"1080ti"}, card("GTX 1080 Ti", 484, 1.58, 11.3, 250)}, {[]string{"2080ti"}, card("RTX 2080 Ti", 616, 1.55, 13.4, 250)},
		{[]string{"titanxp"}, card("Titan Xp", 548, 1.58, 12.1, 250)}, {[]string{"titanx"}, card("Titan X", 336, 1.08, 6.7, 250)},
		{[]string{"titan_rtx"}, card("Titan RTX", 672, 1.77, 16.3, 280)},
		{[]string{"gold_6226"}, with(cpu("Xeon Gold 6226", 12, 2.7, 64, 256), 140, 0, 0)},
		{[]string{"gold_6240"}, with(cpu("Xeon Gold 6240", 18, 2.6, 64, 256), 140, 0, 0)},
		{[]string{"silver_4114"}, with(cpu("Xeon Silver 4114", 10, 2.2, 32, 64), 115, 0, 0)},
		{[]string{"silver_4210r"}, with(cpu("Xeon Silver 4210R", 10, 2.4, 32, 128), 115, 0, 0)},
		{[]string{"essential_ph"}, with(cpu("Essential Phone", 4, 2.45, 8, 16), 30, 0, 0)},
		{[]string{"pixel2"}, with(cpu("Pixel 2", 4, 2.35, 8, 16), 30, 0, 0)},
		{[]string{"pixel3"}, with(cpu("Pixel 3", 4, 2.5, 16, 32), 30, 0, 0)},
		{[]string{"samsung_a50"}, with(cpu("Samsung A50", 4, 2.3, 8, 16), 12, 0, 0)},
		{[]string{"samsung_s7"}, with(cpu("Samsung S7", 4, 2.3, 8, 16), 28, 0, 0)},
		{[]string{"eyeriss"}, gpu(with(cpu("Eyeriss", 1, 1, 2, 2), 1, 0, 0), 0.2, 0.067, 0.067)},
		{[]string{"fpga"}, gpu(with(cpu("FPGA", 1, 1, 2, 2), 4, 0, 0), 0.2, 0.36, 0.36)},
	}
}

// tx2 and xavier are the boards of the configuration grids, computing on their
// graphics processors.
func tx2() estimate.Device {
	d := gpu(with(cpu("Jetson TX2", 4, 2.04, 8, 16), 59.7, 5, 15), 1.3, 0.665, 0.665)
	d.MemoryHertz = 1.866e9
	return d
}

func xavier() estimate.Device {
	d := gpu(with(cpu("Jetson Xavier", 8, 2.26, 16, 32), 137, 9, 30), 1.377, 1.41, 11)
	d.MemoryHertz = 2.133e9
	return d
}

// lookup finds the device that a table's text names. Of others it knows nothing
// but the text, and takes an ordinary board.
func lookup(text string) estimate.Device {
	text = strings.ToLower(text)
	for _, m := range machines() {
		for _, name := range m.names {
			found := true
			for _, word := range strings.Fields(name) {
				found = found && strings.Contains(text, word)
			}
			if found {
				return m.device
			}
		}
	}
	unknown := with(cpu(text, 4, 2, 16, 32), 20, 0, 0)
	if strings.Contains(text, "opencl") || strings.Contains(text, "cuda") {
		return gpu(unknown, 1, 0.3, 0.6)
	}
	return unknown
}
