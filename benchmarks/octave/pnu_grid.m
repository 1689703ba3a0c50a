% The paper's PNU-AUC with its whole grid, written plainly in Octave: our transcription of the
% article, as the authors' own code is not at hand. Kernels once a width, forms once a fold.
%
%   python -m benchmarks.bench_selection octave
%
% The file holds P, N, U, prior, b and repeats. Prints the best run's seconds of processor time.
function pnu_grid(file)
  s = load(file);
  best = Inf;
  for repeat = 1:s.repeats
    start = cputime();
    choose(s.P, s.N, s.U, s.prior, s.b);
    best = min(best, cputime() - start);
  end
  printf("%.4f\n", best);
end

function choose(P, N, U, prior, b)
  rand("seed", 0);
  all_rows = [P; N; U];
  order = randperm(rows(all_rows));
  centers = all_rows(order(1:b), :);
  some = all_rows(order(1:min(1000, end)), :);
  middle = sqrt(median(nonzeros(triu(distances(some, some), 1))));
  folds = {deal_rows(rows(P)), deal_rows(rows(N)), deal_rows(rows(U))};
  g_pu = 1 / (1 + prior^2 * rows(N) / ((1 - prior)^2 * rows(P)));
  g_nu = 1 - g_pu;
  risk = zeros(5, 19, 5);
  D = {distances(P, centers), distances(N, centers), distances(U, centers)};
  widths = [1/8, 1/4, 1/2, 1, 2] * middle;
  for j = 1:5
    K = cellfun(@(d) exp(-d / (2 * widths(j)^2)), D, "UniformOutput", false);
    for k = 1:5
      for r = 1:3
        train{r} = K{r}(folds{r} ~= k, :);
        test{r} = K{r}(folds{r} == k, :);
      end
      [h, H] = forms(train, prior);
      for e = 1:19
        eta = (e - 10) / 10;
        part = 2 + (eta < 0);
        A = (1 - abs(eta)) * H{1} + abs(eta) * H{part};
        a = (1 - abs(eta)) * h{1} + abs(eta) * h{part};
        for l = 1:5
          w = (A + 10^(l - 4) * eye(b)) \ a;
          score = cellfun(@(t) t * w, test, "UniformOutput", false);
          value = loss(score{1}, score{2});
          if eta >= 0
            value = (1 - g_pu) * value + g_pu * (loss(score{1}, score{3}) - prior / 2) / (1 - prior);
          else
            value = (1 - g_nu) * value + g_nu * (loss(score{3}, score{2}) - (1 - prior) / 2) / prior;
          end
          risk(j, e, l) += value / 5;
        end
      end
    end
  end
end

function [h, H] = forms(train, prior)
  [p, n, u] = train{:};
  h{1} = mean(p, 1)' - mean(n, 1)';
  H{1} = between(p, n);
  h{2} = (mean(p, 1)' - mean(u, 1)') / (1 - prior);
  H{2} = (between(p, u) - prior * within(p)) / (1 - prior);
  h{3} = (mean(u, 1)' - mean(n, 1)') / prior;
  H{3} = (between(u, n) - (1 - prior) * within(n)) / prior;
end

function H = between(a, b)
  cross = mean(a, 1)' * mean(b, 1);
  H = a' * a / rows(a) + b' * b / rows(b) - cross - cross';
end

function H = within(a)
  total = sum(a, 1)';
  H = 2 * (a' * a - total * total' / rows(a)) / (rows(a) - 1);
end

function value = loss(a, b)
  value = mean(mean((1 - sign(a - b')) / 2));
end

function d = distances(a, b)
  d = max(sum(a.^2, 2) + sum(b.^2, 2)' - 2 * a * b', 0);
end

function fold = deal_rows(n)
  fold = mod(randperm(n) - 1, 5)' + 1;
end
