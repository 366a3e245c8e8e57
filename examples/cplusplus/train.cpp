// Trains a network with one hidden layer on Fashion-MNIST: one trial of the
// study in study.yaml, in C++ and without any client of Tandem's.
//
// All it has of Tandem is the environment and its standard output; the contract
// is in docs/training-scripts.md. By hand: ./train
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t pixels = 28 * 28;
constexpr std::size_t classes = 10;

std::string variable(const char *name, const std::string &otherwise) {
  const char *value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// The number behind a name in a flat JSON object, as TANDEM_PARAMS is one here.
double parameter(const std::string &object, const std::string &name) {
  const std::string quoted = '"' + name + '"';
  const std::size_t at = object.find(quoted);
  const std::size_t colon = at == std::string::npos ? at : object.find(':', at + quoted.size());
  if (colon == std::string::npos) {
    throw std::runtime_error("TANDEM_PARAMS has no " + quoted + ": " + object);
  }
  return std::stod(object.substr(colon + 1));
}

// Images with pixels from 0 to 1, and their labels.
struct Split {
  std::vector<float> images;
  std::vector<std::uint8_t> labels;
};

// What is behind the header of an idx file.
std::vector<std::uint8_t> content(const std::string &path, std::size_t header) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("cannot read " + path + ": run make in this folder first");
  }
  file.ignore(static_cast<std::streamsize>(header));
  return {std::istreambuf_iterator<char>(file), {}};
}

Split load(const std::string &name) {
  const std::vector<std::uint8_t> bytes = content("build/" + name + "-images", 16);
  Split split{std::vector<float>(bytes.size()), content("build/" + name + "-labels", 8)};
  std::transform(bytes.begin(), bytes.end(), split.images.begin(), [](std::uint8_t byte) { return static_cast<float>(byte) / 255.0F; });
  if (split.images.size() != split.labels.size() * pixels) {
    throw std::runtime_error("build/" + name + "-images and -labels do not belong together");
  }
  return split;
}

// A layer's weights, a row for each of its outputs with the bias at its end,
// and how fast they move.
struct Layer {
  std::size_t inputs, outputs;
  std::vector<float> weights, speed;

  Layer(std::size_t inputs, std::size_t outputs, std::mt19937_64 &random)
      : inputs(inputs), outputs(outputs), weights(outputs * (inputs + 1)), speed(weights.size()) {
    std::normal_distribution<float> usual(0.0F, std::sqrt(2.0F / static_cast<float>(inputs)));
    for (std::size_t i = 0; i < weights.size(); i++) {
      weights[i] = i % (inputs + 1) == inputs ? 0.0F : usual(random);
    }
  }

  void forward(const float *in, float *out) const {
    for (std::size_t o = 0; o < outputs; o++) {
      const float *row = &weights[o * (inputs + 1)];
      out[o] = std::inner_product(in, in + inputs, row, row[inputs]);
    }
  }

  // Moves the weights against the gradients of a batch, and forgets those.
  void step(std::vector<float> &gradient, float rate, float momentum, float decay) {
    for (std::size_t i = 0; i < weights.size(); i++) {
      speed[i] = momentum * speed[i] - rate * (gradient[i] + decay * weights[i]);
      weights[i] += speed[i];
      gradient[i] = 0.0F;
    }
  }
};

struct Network {
  Layer hidden, output;

  Network(std::size_t units, std::mt19937_64 &random) : hidden(pixels, units, random), output(units, classes, random) {}

  // The probabilities of the classes; active gets what the hidden units say.
  void classify(const float *image, std::vector<float> &active, std::vector<float> &probability) const {
    hidden.forward(image, active.data());
    std::replace_if(active.begin(), active.end(), [](float value) { return value < 0.0F; }, 0.0F);
    output.forward(active.data(), probability.data());
    const float highest = *std::max_element(probability.begin(), probability.end());
    float sum = 0.0F;
    for (float &value : probability) {
      sum += value = std::exp(value - highest);
    }
    for (float &value : probability) {
      value /= sum;
    }
  }

  std::vector<std::vector<float> *> state() { return {&hidden.weights, &hidden.speed, &output.weights, &output.speed}; }
};

void epoch(Network &network, const Split &data, const std::vector<std::size_t> &order, std::size_t batch, float rate, float momentum, float decay) {
  const std::size_t units = network.hidden.outputs;
  std::vector<float> active(units), probability(classes), blame(units);
  std::vector<float> below(network.hidden.weights.size()), above(network.output.weights.size());
  for (std::size_t start = 0; start < order.size(); start += batch) {
    const std::size_t end = std::min(start + batch, order.size());
    const float share = 1.0F / static_cast<float>(end - start);
    for (std::size_t i = start; i < end; i++) {
      const float *image = &data.images[order[i] * pixels];
      network.classify(image, active, probability);
      probability[data.labels[order[i]]] -= 1.0F; // now the gradient of the loss
      std::fill(blame.begin(), blame.end(), 0.0F);
      for (std::size_t o = 0; o < classes; o++) {
        const float error = probability[o] * share;
        const float *row = &network.output.weights[o * (units + 1)];
        float *gradient = &above[o * (units + 1)];
        for (std::size_t u = 0; u < units; u++) {
          gradient[u] += error * active[u];
          blame[u] += error * row[u];
        }
        gradient[units] += error;
      }
      for (std::size_t u = 0; u < units; u++) {
        if (active[u] <= 0.0F) {
          continue;
        }
        float *gradient = &below[u * (pixels + 1)];
        for (std::size_t p = 0; p < pixels; p++) {
          gradient[p] += blame[u] * image[p];
        }
        gradient[pixels] += blame[u];
      }
    }
    network.hidden.step(below, rate, momentum, decay);
    network.output.step(above, rate, momentum, decay);
  }
}

struct Score {
  double accuracy, loss;
};

Score evaluate(const Network &network, const Split &data) {
  std::vector<float> active(network.hidden.outputs), probability(classes);
  std::size_t right = 0;
  double loss = 0.0;
  for (std::size_t i = 0; i < data.labels.size(); i++) {
    network.classify(&data.images[i * pixels], active, probability);
    const auto guess = std::max_element(probability.begin(), probability.end()) - probability.begin();
    right += guess == data.labels[i] ? 1 : 0;
    loss -= std::log(std::max(probability[data.labels[i]], std::numeric_limits<float>::min()));
    if (std::isnan(probability[0])) {
      loss = std::numeric_limits<double>::quiet_NaN();
    }
  }
  const auto count = static_cast<double>(data.labels.size());
  return {static_cast<double>(right) / count, loss / count};
}

// A number as a report has it: NaN is a value, and spelt so.
std::string json(double value) { return std::isnan(value) ? "NaN" : std::to_string(value); }

void restore(Network &network, const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  for (std::vector<float> *part : network.state()) {
    file.read(reinterpret_cast<char *>(part->data()), static_cast<std::streamsize>(part->size() * sizeof(float)));
  }
  if (!file) {
    throw std::runtime_error("cannot go on from " + path.string());
  }
}

// Written beside its place and moved there, so that it is never half a file.
void save(Network &network, const std::filesystem::path &path) {
  const std::filesystem::path beside = path.parent_path().string() + ".new";
  std::ofstream file(beside, std::ios::binary);
  for (const std::vector<float> *part : network.state()) {
    file.write(reinterpret_cast<const char *>(part->data()), static_cast<std::streamsize>(part->size() * sizeof(float)));
  }
  file.close();
  if (!file) {
    throw std::runtime_error("cannot write " + beside.string());
  }
  std::filesystem::rename(beside, path);
}

void train() {
  const std::string values = variable("TANDEM_PARAMS", R"({"hidden_units": 32, "learning_rate": 0.05, "momentum": 0.9, "batch_size": 32, "weight_decay": 1e-4})");
  const int first = std::stoi(variable("TANDEM_FIRST_EPOCH", "1"));
  const int last = std::stoi(variable("TANDEM_EPOCHS", "3"));
  const double fraction = std::stod(variable("TANDEM_DATA_FRACTION", "1"));
  const std::uint64_t seed = std::stoull(variable("TANDEM_SEED", "7"));
  const std::string folder = variable("TANDEM_CHECKPOINT_DIR", "");
  const std::filesystem::path state = std::filesystem::path(folder) / "state";

  const Split training = load("train"), validation = load("validation");
  std::mt19937_64 random(seed);
  Network network(static_cast<std::size_t>(parameter(values, "hidden_units")), random);
  if (first > 1) {
    restore(network, state);
  }
  // The first items of one fixed order, so that a smaller share is a part of
  // every larger one.
  std::vector<std::size_t> order(std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(fraction * static_cast<double>(training.labels.size())))));
  for (int number = first; number <= last; number++) {
    std::iota(order.begin(), order.end(), 0);
    std::seed_seq mixed{seed, seed >> 32U, static_cast<std::uint64_t>(number)}; // a resumed run draws the same orders
    std::mt19937_64 drawn(mixed);
    std::shuffle(order.begin(), order.end(), drawn);
    epoch(network, training, order, static_cast<std::size_t>(parameter(values, "batch_size")), static_cast<float>(parameter(values, "learning_rate")),
          static_cast<float>(parameter(values, "momentum")), static_cast<float>(parameter(values, "weight_decay")));
    const Score score = evaluate(network, validation);
    std::cout << "{\"epoch\": " << number << ", \"accuracy\": " << json(score.accuracy) << ", \"loss\": " << json(score.loss) << "}" << std::endl; // flushed: the epoch ends now
  }
  if (!folder.empty()) {
    save(network, state); // with the end, code 0, this is the state after the last epoch
  }
}

} // namespace

int main() {
  try {
    train();
  } catch (const std::exception &error) {
    std::cerr << "train: " << error.what() << "\n";
    return 1;
  }
}
