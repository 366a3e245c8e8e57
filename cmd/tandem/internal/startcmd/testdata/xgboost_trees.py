import argparse

import xgboost as xgb

parser = argparse.ArgumentParser()
parser.add_argument("--eta", type=float, default=0.3)
parser.add_argument("--max_depth", type=int, default=6)
parser.add_argument("--subsample", type=float, default=1.0)
parser.add_argument("--colsample_bytree", type=float, default=1.0)
parser.add_argument("--min_child_weight", type=int, default=1)
parser.add_argument("--reg_lambda", type=float, default=1.0)
parser.add_argument("--gamma", type=float, default=0.0)
parser.add_argument("--booster", default="gbtree", choices=["gbtree", "dart"])
parser.add_argument("--num_boost_round", type=int, default=200)
parser.add_argument("--nthread", type=int, default=4)
args = parser.parse_args()
model = xgb.train(vars(args), xgb.DMatrix("train.svm"), args.num_boost_round)
rmse = float(model.eval(xgb.DMatrix("valid.svm")).split(":")[1])
