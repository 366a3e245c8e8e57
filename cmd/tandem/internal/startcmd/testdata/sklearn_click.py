import click
from sklearn.neural_network import MLPClassifier


@click.command()
@click.option("--hidden-units", default=100, type=int)
@click.option("--alpha-l2", "l2", default=1e-4, show_default=True)
@click.option("--learning-rate", type=click.FloatRange(1e-5, 1.0), default=1e-3)
@click.option("--activation", type=click.Choice(["relu", "tanh", "logistic"]), default="relu")
@click.option("--batch-size", default=200)
@click.option("--early-stopping/--no-early-stopping", default=False)
@click.option("--output", type=click.Path(), default="model.skops")
def main(hidden_units, l2, learning_rate, activation, batch_size, early_stopping, output):
    model = MLPClassifier((hidden_units,), alpha=l2, activation=activation, learning_rate_init=learning_rate)
    accuracy = model.score([], [])
    print(accuracy, batch_size, early_stopping, output)


if __name__ == "__main__":
    main()
