package zoo

import (
	"fmt"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// classes of ImageNet as the published models count them, background included.
const classes = 1001

func picture(resolution int64) shape { return shape{resolution, resolution, 3} }

// divisible rounds channels to a multiple of 8, never below 90 % (Sandler et al.
// 2018 and the models that follow).
func divisible(channels float64) int64 {
	rounded := max(8, int64(channels+4)/8*8)
	if float64(rounded) < 0.9*channels {
		rounded += 8
	}
	return rounded
}

// MobileNetV1 is the network of Howard et al. (2017).
func MobileNetV1(width float64, resolution int64, kind graph.Type) graph.Graph {
	l := start(fmt.Sprintf("mobilenet-v1-%g-%d", width, resolution), kind, picture(resolution))
	scaled := func(channels int64) int64 { return max(8, int64(float64(channels)*width)) }
	l.conv(scaled(32), 3, 2)
	for _, block := range [][2]int64{{64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}, {512, 2}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}} {
		l.depthwise(square(3, block[1]))
		l.conv(scaled(block[0]), 1, 1)
	}
	return classify(l, classes)
}

// classify ends a network: the mean over the picture and a matrix product.
func classify(l *layers, classes int64) graph.Graph {
	l.globalPool()
	l.dense(classes)
	l.softmax()
	return l.done()
}

// inverted is a residual block that widens first (Sandler et al. 2018).
type inverted struct {
	wide, out, kernel, stride int64
	squeeze, swish            bool
	widenAlways               bool
}

func (l *layers) inverted(block inverted) {
	from := l.here()
	swish := func() {
		if block.swish {
			l.hardSwish()
		}
	}
	if block.wide != from.at.channels || block.widenAlways {
		l.conv(block.wide, 1, 1)
		swish()
	}
	l.depthwise(square(block.kernel, block.stride))
	swish()
	if block.squeeze {
		l.squeeze(divisible(float64(block.wide) / 4))
	}
	l.conv(block.out, 1, 1)
	if block.stride == 1 && block.out == from.at.channels {
		l.add(from)
	}
}

// stage is blocks of the same width; only the first may be strided.
type stage struct{ expand, channels, blocks, stride, kernel int64 }

// MobileNetV2 is the network of Sandler et al. (2018).
func MobileNetV2(width float64, resolution int64, kind graph.Type) graph.Graph {
	l := start(fmt.Sprintf("mobilenet-v2-%g-%d", width, resolution), kind, picture(resolution))
	l.conv(divisible(32*width), 3, 2)
	for _, s := range []stage{{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3}, {6, 32, 3, 2, 3}, {6, 64, 4, 2, 3}, {6, 96, 3, 1, 3}, {6, 160, 3, 2, 3}, {6, 320, 1, 1, 3}} {
		l.stage(s, divisible(float64(s.channels)*width))
	}
	l.conv(divisible(1280*max(1, width)), 1, 1)
	return classify(l, classes)
}

func (l *layers) stage(s stage, out int64) {
	for i := range s.blocks {
		stride := s.stride
		if i > 0 {
			stride = 1
		}
		l.inverted(inverted{wide: l.channels() * s.expand, out: out, kernel: s.kernel, stride: stride})
	}
}

// bottleneck is a line of the tables of Howard et al. (2019).
type bottleneck struct {
	kernel, wide, out int64
	squeeze, swish    bool
	stride            int64
}

func large() []bottleneck {
	return []bottleneck{
		{3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
		{5, 72, 40, true, false, 2}, {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
		{3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1}, {3, 184, 80, false, true, 1},
		{3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
		{5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
	}
}

func small() []bottleneck {
	return []bottleneck{
		{3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
		{5, 96, 40, true, true, 2}, {5, 240, 40, true, true, 1}, {5, 240, 40, true, true, 1},
		{5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},
		{5, 288, 96, true, true, 2}, {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1},
	}
}

// V3 chooses among the networks of Howard et al. (2019). The minimalistic ones
// have no squeeze and excitation, no hard swish and no kernel of five.
type V3 struct {
	Large, Minimalistic bool
	Width               float64
	Resolution          int64
}

// MobileNetV3 builds one of them.
func MobileNetV3(of V3, kind graph.Type) graph.Graph {
	name, blocks, hidden := "small", small(), int64(1024)
	if of.Large {
		name, blocks, hidden = "large", large(), 1280
	}
	l := start(fmt.Sprintf("mobilenet-v3-%s-%g-%d-minimalistic-%t", name, of.Width, of.Resolution, of.Minimalistic), kind, picture(of.Resolution))
	swish := func() {
		if !of.Minimalistic {
			l.hardSwish()
		}
	}
	l.conv(divisible(16*of.Width), 3, 2)
	swish()
	wide := int64(0)
	for _, b := range blocks {
		out := divisible(float64(b.out) * of.Width)
		wide = divisible(float64(b.wide) * of.Width)
		kernel := b.kernel
		if of.Minimalistic {
			kernel = 3
		}
		l.inverted(inverted{wide: wide, out: out, kernel: kernel, stride: b.stride, squeeze: b.squeeze && !of.Minimalistic, swish: b.swish && !of.Minimalistic})
	}
	l.conv(wide, 1, 1)
	swish()
	l.globalPool()
	l.conv(divisible(float64(hidden)*max(1, of.Width)), 1, 1)
	swish()
	l.conv(classes, 1, 1)
	l.softmax()
	return l.done()
}

// EfficientNetLite is variant 0 to 4 of EfficientNet without squeeze and
// excitation and with rectifiers (Liu 2020, after Tan and Le 2019).
func EfficientNetLite(variant int, kind graph.Type) graph.Graph {
	scale := [...]struct {
		width, depth float64
		resolution   int64
	}{{1, 1, 224}, {1, 1.1, 240}, {1.1, 1.2, 260}, {1.2, 1.4, 280}, {1.4, 1.8, 300}}[variant]
	l := start(fmt.Sprintf("efficientnet-lite%d", variant), kind, picture(scale.resolution))
	l.conv(32, 3, 2)
	stages := []stage{{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3}, {6, 40, 2, 2, 5}, {6, 80, 3, 2, 3}, {6, 112, 3, 1, 5}, {6, 192, 4, 2, 5}, {6, 320, 1, 1, 3}}
	for i, s := range stages {
		if i > 0 && i < len(stages)-1 {
			s.blocks = ceil(float64(s.blocks) * scale.depth)
		}
		l.stage(s, divisible(float64(s.channels)*scale.width))
	}
	l.conv(1280, 1, 1)
	return classify(l, 1000)
}

func ceil(x float64) int64 {
	whole := int64(x)
	if float64(whole) < x {
		whole++
	}
	return whole
}
