"""Long texts of `--help`; in them, `[bold]` and similar words are rich markup."""

TOP_HELP = """How much privacy does a mechanism really lose?

dpcore attacks a mechanism that claims differential privacy and certifies a
lower bound on the epsilon that it really has."""

STATUS_HELP = """[bold]Exit status[/bold]
  0    not refuted (or no claim was tested)
  1    refuted: the certified bound exceeds the claim
  2    bad usage
  3    no verdict: rows are not independent, or the mechanism or dpcore failed
  130  interrupted (Ctrl-C), whatever was counted"""

TOP_EPILOG = f"""[bold]Examples[/bold]
  dpcore audit half-noise --epsilon 1 --dim 128 --patterns one
  dpcore audit noisy.py:release --x 0 --x-prime 1 --claim 0.5
  dpcore audit-outputs with.npy without.npy --rows independent --claim 1
  dpcore audit-table P.npy --distances D.npy --claim 5
  dpcore plan --claim 1 --factor 0.9
  dpcore reproduce published-systems --out results
  dpcore info

{STATUS_HELP}"""

AUDIT_HELP = """Attack a mechanism and certify a lower bound on its epsilon.

The event and the direction are chosen on pilot draws, then counted on fresh
ones. The claim is refuted when the bound exceeds it; no audit can show that a
mechanism is private. Only the report (or the JSON) goes to stdout."""

AUDIT_EPILOG = f"""[bold]Examples[/bold]
  dpcore audit --list
  dpcore audit laplace --epsilon 1 --x 0,0 --x-prime 0.5,-1 --seed 7
  dpcore audit adept --epsilon 1 --clip 5 --dim 32 --plot adept.png
  dpcore audit half-noise --epsilon 1 --dim 128 --patterns one
  dpcore audit half-noise --epsilon 1 --dim 128 --attack coordinatewise
  dpcore audit half-noise --epsilon 1 --stop refuted --html report.html

  Half-noise loses 2, not 1. Of its own pair, which spreads a distance of 1 over
  128 entries, auto sees .4; all of it where one entry differs (--patterns one).

  A mechanism of your own, such as this one in noisy.py:

    def release(x, size, rng):  # size outputs, one row each
        return x + rng.laplace(scale=2.0, size=(size, len(x)))

  dpcore audit noisy.py:release --x 0 --x-prime 1 --claim 0.5
  dpcore audit noisy.py:release --x 0,0 --x-prime 1,0 --claim 0.5 --neighbour l1=1
  dpcore audit noisy.py:release --x 0 --x-prime 1 --claim gdp=1
  dpcore audit noisy.py:release --x 0 --x-prime 1 --no-claim --json
  dpcore audit noisy.py:one_answer --repeat --x 0 --x-prime 1 --claim 0.5

  A tool in any language, which writes {{size}} lines, one answer each:

  dpcore audit --command 'node tool.js {{x}} {{size}}' --x never --x-prime daily --claim 1

  The two inputs are ones that the claim calls neighbours: zeros against ones in
  eight entries differ by 8, which a claim about a change by 1 does not cover.
  Its attributes claim (a number) and default_pair (a function that returns a
  dpcore.Pair) stand in for --claim and --x where it has them.

{STATUS_HELP}"""

OUTPUTS_HELP = """Audit outputs that were drawn elsewhere, from two files or one with labels.

Rows that are independent draws are shuffled and split: one part chooses the
event, the other is counted. Canaries of a single training run are not
independent: for them the bound of Steinke, Nasr and Jagielski (2023) holds."""

OUTPUTS_EPILOG = f"""[bold]Examples[/bold]
  dpcore audit-outputs with.npy without.npy --rows independent --claim 1
  dpcore audit-outputs scores.csv --label member --rows one_run --claim 8 --delta 1e-5

{STATUS_HELP}"""

TABLE_HELP = """Compute the exact privacy loss of a mechanism with finitely many outputs.

The table has a row for each input and a column for each output: probabilities,
or natural logarithms with --log. All pairs of rows are compared: the loss is
computed, neither sampled nor estimated."""

TABLE_EPILOG = f"""[bold]Examples[/bold]
  dpcore audit-table P.npy --claim 1
  dpcore audit-table P.npy --distances D.npy --claim 5
  dpcore audit-table logs.npy --log --no-claim --json

{STATUS_HELP}"""

PLAN_HELP = """How many trials an audit needs to find that a claim is false.

The violation is a true loss or a noise too small by a factor; without either,
the one that the pilots of a mechanism show. The event is given by its mass or
chosen by those pilots. For one training run: how many canaries and guesses."""

PLAN_EPILOG = """[bold]Examples[/bold]
  dpcore plan --claim 1 --true-epsilon 1.111 --mass 0.1 --confidence 0.9999
  dpcore plan --claim 1 --factor 0.9 --plot power.png
  dpcore plan noisy.py:release --x 0 --x-prime 1 --claim 0.5 --factor 0.9
  dpcore plan half-noise --epsilon 1
  dpcore plan --claim 8 --true-epsilon 10 --guesses 1.0

[bold]Exit status[/bold]
  0 planned, 2 bad usage, 3 the mechanism or dpcore failed, 130 interrupted"""

REPRODUCE_HELP = """Remake a figure or table of the papers, by name.

Prints the table and writes NAME.json, NAME.png and NAME.svg. Without a name,
lists the experiments."""

REPRODUCE_EPILOG = """[bold]Examples[/bold]
  dpcore reproduce
  dpcore reproduce published-systems --out results
  dpcore reproduce habernal2022-figure1 --trials 1e5 --seed 1
  dpcore reproduce noise-layers --quick

[bold]Exit status[/bold]
  0    done, whatever was refuted
  2    bad usage
  3    dpcore failed
  130  interrupted (Ctrl-C, SIGTERM); what was done is printed and kept"""

INFO_HELP = """Show versions, the CPU path in use, and the number of threads.

The environment variable DPCORE_CPU (baseline, avx2 or avx512) forces a path;
all paths give the same bits."""

INFO_EPILOG = """[bold]Examples[/bold]
  dpcore info
  dpcore info --json
  DPCORE_CPU=baseline dpcore info

[bold]Exit status[/bold]
  0 shown, 2 bad usage, 3 dpcore failed"""
