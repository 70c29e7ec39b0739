;;; drive.el --- Emacs does what a person would, and says what stands in its buffer  -*- lexical-binding: t -*-

;; Run as `emacs --batch -l drive.el CONFIGURATION FILE STORY`: CONFIGURATION is what stands in the README, STORY one of
;; the functions below without `story-`. What a story returns is printed as the last line, in JSON.

(require 'json)
(require 'package)
(package-initialize)
(require 'eglot)

(defun wait-for-offers ()
  "Wait until the server has heard the settings: it offers nothing before."
  (with-timeout (60 (error "Nothing is offered"))
    (while (not (eglot-code-actions (point-min) (point-max)))
      (accept-process-output nil 0.05))))

(defun asked ()
  "What the scripted engine has been asked."
  (jsonrpc-request (eglot-current-server) :test/engine nil))

(defun press-code-action (title beg end)
  "Take the code action TITLE for the text from BEG to END, and say yes where Emacs asks whether to apply it."
  (let ((last-nonmenu-event t) offered)
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt items &rest _) (setq offered (mapcar #'car items)) title))
              ((symbol-function 'y-or-n-p) (lambda (&rest _) t)))
      (eglot-code-actions beg end nil t))
    offered))

(defun story-menu ()
  "Complete at the end of the buffer."
  (goto-char (point-max))
  (completion-at-point)
  `((text . ,(buffer-string)) (point . ,(point)) (size . ,(point-max)) (engine . ,(asked))))

(defun story-action ()
  "Fill the second line from its surroundings, and take it back with one undo."
  (buffer-enable-undo)
  (undo-boundary)
  (goto-char (point-min))
  (forward-line 1)
  (let* ((offered (press-code-action "Fill selection from surroundings" (point) (line-end-position)))
         (filled (buffer-string)))
    (undo-boundary)
    (undo)
    `((offered . ,(vconcat offered)) (text . ,filled) (undone . ,(buffer-string)))))

(defun main (configuration file story)
  "Take over CONFIGURATION, open FILE, wait for the server, and print what the function STORY returns."
  (setq eglot-sync-connect 60 eglot-connect-timeout 60 make-backup-files nil create-lockfiles nil)
  (load configuration nil t)
  (find-file file)
  ;; Nobody types in batch mode, and that is what `eglot-ensure' waits for.
  (run-hooks 'post-command-hook)
  (wait-for-offers)
  (let ((result (funcall (intern (concat "story-" story)))))
    (princ (concat (json-encode result) "\n")))
  (eglot-shutdown (eglot-current-server) nil 20))

(apply #'main command-line-args-left)
