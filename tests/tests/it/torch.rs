//! `gfxpack problems -- PROGRAM`: PyTorch tells what it would hand to MIOpen, without a GPU.

use crate::support::project::{Project, Run, finish, workspace};

/// Debian's Python, which has its torch.
const PYTHON: &str = "/usr/bin/python3";

/// A network that is trained, with every kind of layer that MIOpen computes. It says `cuda`.
const TRAIN: &str = r#"
import sys
import torch
from torch import nn

assert torch.cuda.is_available()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.depthwise = nn.Conv2d(8, 8, 3, groups=8)
        self.up = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1, groups=2)
        self.dilated = nn.Conv2d(4, 4, 3, dilation=2)
        self.line = nn.Sequential(nn.Conv1d(4, 4, 3), nn.BatchNorm1d(4))
        self.volume = nn.Sequential(nn.Conv3d(1, 2, 3), nn.BatchNorm3d(2))
        self.lstm = nn.LSTM(4, 8, 2, batch_first=True)
        self.gru = nn.GRU(8, 8, bidirectional=True)

    def forward(self, x):
        x = self.dilated(self.up(self.depthwise(nn.functional.max_pool2d(self.stem(x), 2))))
        line = self.lstm(self.line(x.flatten(2)).transpose(1, 2))[0]
        return self.gru(line)[0].mean() + self.volume(x[:, None]).mean()

net = Net().to(torch.device("cuda"))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
data = torch.utils.data.TensorDataset(torch.randn(4, 3, 12, 12))
for (images,) in torch.utils.data.DataLoader(data, 2, shuffle=True, num_workers=2, pin_memory=True):
    with torch.cuda.amp.autocast(enabled="--amp" in sys.argv):
        loss = net(images.cuda(non_blocking=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print("loss", loss.item())
torch.save(net.state_dict(), "net.pt")
"#;

fn record(project: &Project, arguments: &[&str]) -> Run {
    let arguments = [&["problems", "-o", "problems.txt"], arguments].concat();
    finish(project.command(&arguments))
}

/// The lines of a list without the numbers of calls.
fn lines(project: &Project) -> Vec<String> {
    let text = project.text("problems.txt");
    let bare = |line: &str| line.split(" # ").next().unwrap_or_default().to_owned();
    text.lines().map(bare).collect()
}

#[test]
fn a_program_for_gpus_tells_the_same_problems_fake_and_computed() {
    let project = Project::new();
    project.write("train.py", TRAIN);
    let run = record(&project, &["--", PYTHON, "train.py"]).expect_code(0);
    assert!(run.stdout.starts_with("loss 1.0\nloss 1.0\n"), "{}", run.stdout);
    assert!(run.stderr.contains("29 problems in 58 calls"), "{}", run.stderr);
    assert!(run.stderr.contains("2 times at values that nothing computed"), "{}", run.stderr);
    assert!(!project.path().join("net.pt").exists(), "a checkpoint of nothing");
    let fake = project.text("problems.txt");
    for line in [
        "conv -n 2 -c 3 -H 12 -W 12 -k 8 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1 # calls: 2",
        "conv -n 2 -c 8 -H 6 -W 6 -k 8 -y 3 -x 3 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -m conv -g 8 -F 2 # calls: 2",
        "conv -n 2 -c 8 -H 4 -W 4 -k 4 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -l 1 -j 1 -Y 1 -X 1 -m trans -g 2 -F 4 # calls: 2",
        "conv -n 2 -c 4 -H 1 -W 16 -k 4 -y 1 -x 3 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1 # calls: 2",
        "bnorm -n 2 -c 8 -H 12 -W 12 -m 1 --forw 1 -b 0 -s 1 -r 1 # calls: 2",
        "bnorm -n 2 -c 4 -H 14 -W 1 -m 1 --forw 0 -b 1 -s 1 # calls: 2",
        "bnorm -n 2 -c 2 -D 2 -H 2 -W 2 -m 1 --forw 1 -b 0 -s 1 -r 1 # calls: 2",
        "rnn -n 2 -W 4 -H 8 -l 2 -b 1 -m lstm -p 0 -r 0 -q 0 -k 14 -c 0 -F 1 # calls: 2",
        "rnn -n 14 -W 8 -H 8 -l 1 -b 1 -m gru -p 0 -r 1 -q 0 -k 2 -F 4 # calls: 2",
    ] {
        assert!(fake.contains(&format!("MIOpenDriver {line}\n")), "{line}\n{fake}");
    }
    assert!(!fake.contains(
        "-c 3 -H 12 -W 12 -k 8 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 2"
    ));
    record(&project, &["--compute", "--", PYTHON, "train.py"]).expect_code(0);
    assert_eq!(project.text("problems.txt"), fake);
    assert!(project.path().join("net.pt").exists());
    // gfxpack reads what it wrote, and writes lines in the same way.
    let again = project.run(&["problems", "--problems", "problems.txt"]).expect_code(0);
    let mut read: Vec<&str> = again.stdout.lines().collect();
    read.sort_unstable();
    assert_eq!(read, lines(&project));
    record(&project, &["--", PYTHON, "train.py", "--amp"]).expect_code(0);
    let half = |line: &String| {
        let line = line.replace("MIOpenDriver conv ", "MIOpenDriver convfp16 ");
        let line = line.replace("MIOpenDriver rnn ", "MIOpenDriver rnnfp16 ");
        line.replace("MIOpenDriver bnorm ", "MIOpenDriver bnormfp16fp32 ")
    };
    let mut halves: Vec<String> = read.iter().map(|line| half(&(*line).to_owned())).collect();
    halves.sort_unstable();
    assert_eq!(lines(&project), halves);
}

#[test]
fn a_program_that_fails_leaves_its_lines_traceback_and_code() {
    let project = Project::new();
    let program = "import sys, torch\n\
        net = torch.nn.Conv2d(1, 2, 3)\n\
        net(torch.zeros(1, 1, 8, 8))\n\
        if len(sys.argv) > 1: sys.exit(7)\n\
        torch.nonzero(torch.zeros(3))\n";
    project.write("app.py", program);
    let run = record(&project, &["--", PYTHON, "app.py", "now"]).expect_code(7);
    assert_eq!(lines(&project).len(), 1, "{}", run.stderr);
    let run = record(&project, &["--", PYTHON, "app.py"]).expect_code(1);
    assert!(run.stderr.contains("line 5, in <module>"), "{}", run.stderr);
    assert!(
        run.stderr.contains("hint: nothing was computed; --compute computes"),
        "{}",
        run.stderr
    );
    assert_eq!(lines(&project).len(), 1, "{}", run.stderr);
    record(&project, &["--compute", "--", PYTHON, "app.py"]).expect_code(0);
    // A program that fails before that leaves the list that is there.
    let run = record(&project, &["--", PYTHON, "-c", "raise SystemExit(3)"]).expect_code(3);
    assert!(run.stderr.contains("no list is written"), "{}", run.stderr);
    assert_eq!(lines(&project).len(), 1, "{}", run.stderr);
    record(&project, &["--", PYTHON, "-c", "print(1)"]).expect_code(0);
    assert_eq!(project.text("problems.txt"), "");
    let run = record(&project, &["--", "gone"]).expect_code(2);
    assert!(run.stderr.contains("failed to start the program `gone`"), "{}", run.stderr);
}

#[test]
fn what_is_handed_over_depends_on_layout_and_type() {
    let project = Project::new();
    let program = "import torch\n\
        from torch import nn\n\
        x = torch.zeros(2, 4, 8, 8).to(memory_format=torch.channels_last)\n\
        nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)).to(memory_format=torch.channels_last)(x)\n\
        nn.functional.avg_pool2d(x, 2)\n\
        nn.Conv2d(4, 4, 3).double()(x.double())\n\
        nn.ConvTranspose2d(4, 6, 3, dilation=2, output_padding=1)(torch.zeros(1, 4, 5, 5))\n\
        nn.functional.ctc_loss(torch.zeros(9, 1, 5), torch.ones(3, dtype=torch.int32), [9], [3])\n\
        nn.Conv2d(4, 4, 3, groups=2, dilation=2)(x)\n\
        nn.BatchNorm2d(4, affine=False)(x)\n";
    project.write("app.py", program);
    let recorded = |variables: &[(&str, &str)]| {
        let mut command =
            project.command(&["problems", "-o", "problems.txt", "--", PYTHON, "app.py"]);
        command.envs(variables.iter().copied());
        finish(command).expect_code(0);
        lines(&project)
    };
    let transposed = "MIOpenDriver conv -n 1 -c 6 -H 10 -W 10 -k 4 -y 3 -x 3 -p 0 -q 0 -u 1 -v 1 -l 2 -j 2 -m conv -g 1 -F 2";
    let ctc = "MIOpenDriver ctc -n 1 -c 4 -k 9 -l 3 -m 1 -b 0 -a 0 -F 1";
    let conv = "MIOpenDriver conv -n 2 -c 4 -H 8 -W 8 -k 4 -y 3 -x 3 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1";
    let first = format!("{conv} -m conv -g 1 -F 1");
    let nhwc = "--in_layout NHWC --fil_layout NHWC --out_layout NHWC";
    let last = format!("{conv} {nhwc} -m conv -g 1 -F 1");
    let norm = "MIOpenDriver bnorm -n 2 -c 4 -H 6 -W 6 -m 1 --forw 1 -b 0 -s 1 -r 1";
    assert_eq!(recorded(&[]), [norm, transposed, last.as_str(), first.as_str(), ctc]);
    let variable = "PYTORCH_MIOPEN_SUGGEST_NHWC";
    assert_eq!(recorded(&[(variable, "0")]), [norm, transposed, first.as_str(), ctc]);
    assert_eq!(recorded(&[(variable, "1")]), [transposed, last.as_str(), ctc]);
    let both = [(variable, "1"), ("PYTORCH_MIOPEN_SUGGEST_NHWC_BATCHNORM", "1")];
    assert_eq!(recorded(&both), [&format!("{norm} --layout NHWC"), transposed, &last, ctc]);
}

#[test]
fn the_package_records_within_a_program_and_starts_one() {
    let project = Project::new();
    project.write("sitecustomize.py", "print('own start')\n");
    let program = "import torch, gfxpack_torch\n\
        net = torch.nn.Conv2d(1, 2, 3)\n\
        @gfxpack_torch.record('called.txt')\n\
        def call(size): return net(torch.zeros(1, 1, size, size)).shape\n\
        if __name__ == '__main__':\n\
        \x20   for size in range(3, 23): assert call(size)[-1] == size - 2\n\
        \x20   assert call.__name__ == 'call'\n\
        \x20   with gfxpack_torch.record('within.txt', compute=True):\n\
        \x20       assert net(torch.zeros(1, 1, 8, 8)).sum().item() != 1.0\n\
        \x20   assert not torch.cuda.is_available()\n";
    project.write("app.py", program);
    let package = workspace().join("packaging/python");
    let python = |arguments: &[&str], path: &str| {
        let mut command = crate::support::project::command(PYTHON);
        command.args(arguments).current_dir(project.path()).env("PYTHONPATH", path);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        finish(command).expect_code(0)
    };
    let path = package.display().to_string();
    let run = python(&["app.py"], &path);
    assert_eq!(project.text("called.txt").lines().count(), 20, "{}", run.stderr);
    assert!(run.stderr.contains("1 layers have inputs of more than 16 shapes"), "{}", run.stderr);
    assert_eq!(project.text("within.txt").lines().count(), 1, "{}", run.stderr);
    project.write("plain.py", "import torch, sys; print(sys.argv)\ntorch.nn.Conv2d(1, 2, 3)(torch.zeros(1, 1, 8, 8, device='cuda:0'))\n");
    let run = python(&["-m", "gfxpack_torch", "-o", "of.txt", "plain.py", "--x"], &path);
    assert_eq!(run.stdout, "['plain.py', '--x']\n");
    assert_eq!(project.text("of.txt"), project.text("within.txt"));
    // The user's own start-up file runs too.
    let mut command = project.command(&["problems", "--", PYTHON, "plain.py"]);
    command.env("PYTHONPATH", project.path());
    let run = finish(command).expect_code(0);
    assert!(run.stderr.contains("own start"), "{}", run.stderr);
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
}
