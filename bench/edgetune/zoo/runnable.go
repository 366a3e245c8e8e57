package zoo

import "github.com/tandem-tune/tandem/inference_emu/graph"

// LeNet5 is the network of LeCun et al. (1998) as it is taught: rectifiers, the
// largest of a window, 28 by 28 pixels that are padded.
func LeNet5(kind graph.Type) graph.Graph {
	l := start("lenet-5", kind, shape{28, 28, 1})
	l.conv(6, 5, 1)
	l.pool("MaxPool", square(2, 2))
	l.convolve(16, window{5, 5, 1, true})
	l.pool("MaxPool", square(2, 2))
	l.dense(120)
	l.dense(84)
	l.dense(10)
	return l.done()
}

// AlexNet is the network of Krizhevsky (2014) with one column, padded so that the
// first convolution makes 56 by 56 of 224 by 224.
func AlexNet(kind graph.Type) graph.Graph {
	l := start("alexnet", kind, picture(224))
	pool := window{3, 3, 2, true}
	l.conv(64, 11, 4)
	l.pool("MaxPool", pool)
	l.conv(192, 5, 1)
	l.pool("MaxPool", pool)
	l.conv(384, 3, 1)
	l.conv(256, 3, 1)
	l.conv(256, 3, 1)
	l.pool("MaxPool", pool)
	l.dense(4096)
	l.dense(4096)
	l.dense(1000)
	return l.done()
}

// Runnable are ten networks from small to middle size, in floating point, that can
// be written to a [File] and run: what the estimates of an engine are learned from.
// An error is a defect of the program.
func Runnable() ([]graph.Graph, error) {
	f := graph.Float32
	all := []graph.Graph{LeNet5(f), AlexNet(f), MobileNetV1(0.25, 128, f), MobileNetV3(V3{Width: 1, Resolution: 96}, f), ResNet50(64, f)}
	for _, task := range []string{"ad", "ic", "kws", "vww"} {
		g, err := Tiny(task, f)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	cell, err := NASBench201("|nor_conv_3x3~0|+|nor_conv_1x1~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|", f, true)
	if err != nil {
		return nil, err
	}
	cell.Name = "nasbench201"
	return append(all, cell), nil
}
